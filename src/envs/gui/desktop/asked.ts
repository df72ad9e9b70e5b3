import { PaddockError } from '../../../core/index.ts'

const answerMs = 60_000

/**
 * A callback of the X library as a promise, bounded by time and by `over`, the end of the connection, of which the
 * library tells nobody who waits. Throws `BROWSER_GONE`.
 */
export async function asked<T>(
  over: AbortSignal,
  what: string,
  ask: (done: (error: Error | null, answer: T) => void) => void,
): Promise<T> {
  const answer = Promise.withResolvers<T>()
  const gone = (): void => answer.reject(new PaddockError('BROWSER_GONE', `The X server is gone at ${what}`))
  if (over.aborted) gone()
  over.addEventListener('abort', gone, { once: true })
  const timer = setTimeout(() => {
    answer.reject(new PaddockError('BROWSER_GONE', `The X server does not answer ${what}`))
  }, answerMs)
  ask((error, value) => {
    if (error === null || error === undefined) answer.resolve(value)
    else answer.reject(new PaddockError('BROWSER_GONE', `The X server refused ${what}: ${error.message}`))
  })
  return answer.promise.finally(() => {
    clearTimeout(timer)
    over.removeEventListener('abort', gone)
  })
}
