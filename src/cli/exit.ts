import { isPaddockError, type PaddockError } from '../core/index.ts'

/** Exit codes of every command; `docs/reference/cli.md` documents them. */
export const exitCode = {
  ok: 0,
  /** The command did its work and found something wrong (a task that does not validate, a store that does not check). */
  problems: 1,
  usage: 2,
  infra: 3,
  engine: 4,
  cancelled: 130,
} as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

/** The exit code that an error ends the process with. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!isPaddockError(error)) return exitCode.infra
  return exitCodeOfFamily(error)
}

function exitCodeOfFamily(error: PaddockError): ExitCode {
  switch (error.family) {
    case 'request':
      return exitCode.usage
    case 'engine':
      return exitCode.engine
    case 'infra':
      return exitCode.infra
    case 'agent':
      return exitCode.problems
  }
}
