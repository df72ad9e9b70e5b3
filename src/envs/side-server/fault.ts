import { PaddockError } from '../../core/index.ts'

/** A fault of the environment's server, whatever it was: nothing can be said of the agent. */
export function serverFault(what: string, cause?: unknown): PaddockError {
  const about = cause === undefined ? {} : { cause }
  return new PaddockError('ENVIRONMENT_SERVER_FAILED', `The environment's server ${what}`, about)
}
