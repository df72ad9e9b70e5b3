import { PaddockError } from '../../core/index.ts'
import type { Operations } from './serve.ts'

/** The same operations, a violated uniqueness named `STORE_CONFLICT`. */
export function conflictsNamed(operations: Operations): Operations {
  return Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [
      name,
      async (...args: never[]): Promise<unknown> => {
        try {
          return await operation(...args)
        } catch (error) {
          if (isConstraint(error)) {
            throw new PaddockError('STORE_CONFLICT', `${name} contradicts the store: ${error.message}`, {
              cause: error,
            })
          }
          throw error
        }
      },
    ]),
  )
}

function isConstraint(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    error.code.startsWith('SQLITE_CONSTRAINT')
  )
}
