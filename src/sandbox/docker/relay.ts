import { PaddockError } from '../../core/index.ts'
import type { AttachedContainer } from './attached.ts'
import { AttachReader } from './frames.ts'

/** Resolves when the relay has said `ready`, which it does once it listens. */
export function relayReady(relay: AttachedContainer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = ''
    const reader = new AttachReader(
      (piece) => {
        said += piece.toString('latin1')
        if (said.includes('ready\n')) settle(resolve)
      },
      (piece) => (said += piece.toString('latin1')),
    )
    const data = (chunk: Buffer): void => reader.push(chunk)
    const dead = (): void => {
      settle(() => reject(new PaddockError('BOX_START_FAILED', `The relay of the model path died: ${said.trim()}`)))
    }
    const abort = (): void => settle(() => reject(signal.reason))
    const settle = (then: () => void): void => {
      relay.stream.off('data', data).off('close', dead).resume()
      signal.removeEventListener('abort', abort)
      then()
    }
    relay.stream.on('data', data).once('close', dead)
    signal.addEventListener('abort', abort, { once: true })
  })
}
