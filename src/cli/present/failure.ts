import { isPaddockError, PaddockError } from '../../core/index.ts'

/** Every failure as a {@link PaddockError}: what is not one is a fault of ours (`INTERNAL`). */
export function asPaddockError(error: unknown): PaddockError {
  if (isPaddockError(error)) return error
  const message = error instanceof Error ? error.message : String(error)
  return new PaddockError('INTERNAL', message === '' ? 'an error without a message' : message, { cause: error })
}

/** One line, `CODE: what. Fix: …`; with `verbose` the stacks of the error and its causes follow. */
export function failureText(error: unknown, verbose: boolean): string {
  const known = asPaddockError(error)
  if (!verbose) return known.line().replace(/\s*\n\s*/g, ' ')
  return [known.line(), ...stacks(error)].join('\n')
}

function stacks(error: unknown): string[] {
  const found: string[] = []
  for (let here: unknown = error; here instanceof Error; here = here.cause) found.push(here.stack ?? here.message)
  return found
}
