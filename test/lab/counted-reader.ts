/** A store's reader that counts the lines which each read gave. */
import type { StoreReader } from '../../src/trajectory/index.ts'

/** What was read. */
export interface Counted {
  /** Lines that the largest read gave, by the name of the read. */
  readonly largest: Map<string, number>
  /** Lines of all reads since this was set to 0. */
  total: number
}

/** Lines in what a read gave: entries of its lists. */
function linesOf(value: unknown): number {
  if (Array.isArray(value)) return value.length
  if (value instanceof Map) return value.size
  if (typeof value !== 'object' || value === null) return value === null || value === undefined ? 0 : 1
  return Object.values(value).reduce<number>((sum, one) => sum + (Array.isArray(one) ? one.length : 0), 0) || 1
}

/** A reader of the same store whose reads of catalogue and trainer's book are counted. */
export function countedReader(reader: StoreReader): { readonly reader: StoreReader; readonly counted: Counted } {
  const counted: Counted = { largest: new Map(), total: 0 }
  const watched = <T extends object>(door: string, target: T): T =>
    new Proxy(target, {
      get: (of, name) => {
        const method: unknown = Reflect.get(of, name)
        if (typeof method !== 'function') return method
        return async (...args: unknown[]): Promise<unknown> => {
          const value: unknown = await Reflect.apply(method, of, args)
          const lines = linesOf(value)
          const read = `${door}.${String(name)}`
          counted.largest.set(read, Math.max(lines, counted.largest.get(read) ?? 0))
          counted.total += lines
          return value
        }
      },
    })
  const catalogue = watched('catalogue', reader.catalogue)
  const trainer = watched('trainer', reader.trainer)
  return {
    counted,
    reader: new Proxy(reader, {
      get: (of, name) =>
        name === 'catalogue' ? catalogue : name === 'trainer' ? trainer : (Reflect.get(of, name) as unknown),
    }),
  }
}
