import { isPaddockError, PaddockError } from '../../core/index.ts'
import { reason } from '../engines/http.ts'
import type { LineBreak } from '../http/engine-line/index.ts'
import { whyLacking } from './adapters.ts'

/** Why a replica did not get its adapter. */
export function asPaddockError(cause: unknown): PaddockError {
  if (isPaddockError(cause)) return cause
  return new PaddockError('WEIGHTS_REFUSED', whyLacking(cause), { cause })
}

/** How a connection broke, as the harness is told. */
export function upstreamFailure({ kind, cause }: LineBreak): PaddockError {
  const why = reason(cause)
  switch (kind) {
    case 'unreachable':
      return new PaddockError('ENGINE_UNREACHABLE', `The engine cannot be reached: ${why}.`, { cause })
    case 'malformed':
      return new PaddockError('ENGINE_ERROR', `The engine's answer is not valid HTTP: ${why}.`, { cause })
    case 'died':
      return new PaddockError(
        'ENGINE_DIED',
        `The engine closed the connection before the answer was complete: ${why}.`,
        { cause },
      )
  }
}
