import { PaddockError } from '../../../core/index.ts'

const answerMs = 60_000

/** A callback of the X library as a promise, bounded. Throws `BROWSER_GONE`. */
export async function asked<T>(
  what: string,
  ask: (done: (error: Error | null, answer: T) => void) => void,
): Promise<T> {
  const answer = Promise.withResolvers<T>()
  const timer = setTimeout(() => {
    answer.reject(new PaddockError('BROWSER_GONE', `The X server does not answer ${what}`))
  }, answerMs)
  ask((error, value) => {
    if (error === null || error === undefined) answer.resolve(value)
    else answer.reject(new PaddockError('BROWSER_GONE', `The X server refused ${what}: ${error.message}`))
  })
  return answer.promise.finally(() => clearTimeout(timer))
}
