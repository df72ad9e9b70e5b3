import { isPaddockError } from '../../core/index.ts'
import type { ToolOutcome } from '../contract.ts'

/** An act in the environment: a fault of its server is `infra`; who gave the call up gets the signal's reason at once, though the act goes on. */
export async function acted(signal: AbortSignal, act: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  signal.throwIfAborted()
  const stopped = Promise.withResolvers<never>()
  const stop = (): void => stopped.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const acting = act()
  acting.catch(() => undefined)
  try {
    return await Promise.race([acting, stopped.promise])
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (isPaddockError(error) && error.family === 'infra') return { status: 'infra', text: error.line(), fault: error }
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
