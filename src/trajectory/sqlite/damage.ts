import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { Operations } from './serve.ts'

/** What SQLite says of a file that is no database any more, or of one whose schema is not ours. */
const ofDamage = /^SQLITE_(CORRUPT|NOTADB|FORMAT|SCHEMA|MISMATCH|ERROR)/

/**
 * An error of the store for one that something else threw while stored bytes were read: `STORE_CORRUPT` where they are not
 * what was written, else `STORE_FAILED`. An error of ours stays as it is.
 */
export function asStoreError(error: unknown, where: string): PaddockError {
  if (isPaddockError(error)) return error
  const why = error instanceof Error ? error.message : String(error)
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // What is parsed or unpacked here was written by us: where that throws, it is not what was written.
  const unreadable = error instanceof SyntaxError || error instanceof RangeError || error instanceof TypeError
  return unreadable || ofDamage.test(code)
    ? new PaddockError('STORE_CORRUPT', `${where} cannot be read: ${why}`, { cause: error })
    : new PaddockError('STORE_FAILED', `${where}: ${why}`, { cause: error })
}

/** The same operations, whatever they throw named by {@link asStoreError}. */
export function damageNamed(operations: Operations): Operations {
  return Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [
      name,
      async (...args: never[]): Promise<unknown> => {
        try {
          return await operation(...args)
        } catch (error) {
          throw asStoreError(error, name)
        }
      },
    ]),
  )
}
