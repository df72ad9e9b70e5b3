import type { gui } from '../../../../../kits/environment.ts'

/** What a getter found; null stands for nothing found, as `None` does there. */
export type Found = gui.Found

/** What a metric compares. `expected` is null where the task names none. */
export interface Compared {
  readonly result: Found
  readonly expected: Found
  readonly options: Readonly<Record<string, unknown>>
}

/** From 0 to 1. Throws {@link NotComparable} for a task whose rules it cannot follow: nothing can be said of the agent. */
export type Metric = (compared: Compared) => number

/** The rules of the task are not what the metric takes. */
export class NotComparable extends Error {}

/** All or nothing. */
export const one = (holds: boolean): number => (holds ? 1 : 0)

/** The JSON value; null for a file and for nothing. */
export function valueOf(found: Found): unknown {
  return found?.kind === 'value' ? found.value : null
}

/** A value as text, or a file's text; null for nothing. */
export function textOf(found: Found): string | null {
  if (found?.kind === 'value') return typeof found.value === 'string' ? found.value : null
  return found?.kind === 'file' ? found.data.toString('utf8') : null
}

/** A JSON value of a text; undefined for what is none. */
export function jsonIn(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An object's members; throws {@link NotComparable} for anything else. */
export function rulesOf(found: Found): Readonly<Record<string, unknown>> {
  const value = valueOf(found)
  if (isRecord(value)) return value
  throw new NotComparable('the rules are no object')
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The texts of a list; throws {@link NotComparable} for anything else. */
export function textsOf(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value]
  if (list.every((one) => typeof one === 'string')) return list
  throw new NotComparable('a list of texts was expected')
}

/** Whether two lists hold the same, however often and in whatever order. */
export function sameSet(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.every((one) => b.includes(one)) && b.every((one) => a.includes(one))
}

/** A member that must be there; throws {@link NotComparable} as Python's `rules["…"]` does. */
export function ruleOf(rules: Readonly<Record<string, unknown>>, name: string): unknown {
  if (!(name in rules)) throw new NotComparable(`the rules have no ${name}`)
  return rules[name]
}

/** A pattern of Python as one of ours. Throws {@link NotComparable} for what only Python understands. */
export function pythonPattern(pattern: string, flags = ''): RegExp {
  const [, inline = '', rest = pattern] = /^\(\?([ims]+)\)([\s\S]*)$/.exec(pattern) ?? []
  const source = rest
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\(\?P=(\w+)\)/g, '\\k<$1>')
    .replaceAll('\\Z', '$')
  try {
    return new RegExp(source, [...new Set(`${inline}${flags}`)].join(''))
  } catch (cause) {
    throw new NotComparable(`the pattern ${JSON.stringify(pattern)} cannot be read`, { cause })
  }
}
