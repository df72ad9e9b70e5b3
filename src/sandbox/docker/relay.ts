import { PaddockError } from '../../core/index.ts'
import { takeBytes } from './attach-stream.ts'
import type { AttachedContainer } from './attached.ts'
import { AttachReader } from './frames.ts'
import { RelayLines } from './lines.ts'

/**
 * Resolves when the relay has said `ready`, which it does once it listens: with null, or with why it could not do what it
 * was asked to do beyond the model path. With a `socketPath` its stream carries the box's connections to there from then on.
 */
export function relayReady(
  relay: AttachedContainer,
  signal: AbortSignal,
  socketPath: string | null,
): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let said = ''
    let settled = false
    const lines = socketPath === null ? null : new RelayLines(relay.stream, socketPath)
    const reader = new AttachReader(
      (piece) => {
        if (settled) return lines?.push(piece)
        said += piece.toString('latin1')
        const ready = /^ready(?:, asked only: (.*))?$/m.exec(said.slice(0, said.lastIndexOf('\n') + 1))
        if (ready !== null) settle(() => resolve(ready[1] ?? null))
      },
      (piece) => (said = (said + piece.toString('latin1')).slice(-4096)),
    )
    const dead = (): void => {
      settle(() => reject(new PaddockError('BOX_START_FAILED', `The relay of the model path died: ${said.trim()}`)))
    }
    const abort = (): void => settle(() => reject(signal.reason))
    const settle = (then: () => void): void => {
      settled = true
      relay.stream.off('close', dead)
      signal.removeEventListener('abort', abort)
      then()
    }
    // What a relay with a socket says later is of no interest, but read.
    takeBytes(relay.stream, (chunk) => (settled && lines === null ? undefined : reader.push(chunk)))
    relay.stream.once('close', dead)
    signal.addEventListener('abort', abort, { once: true })
  })
}
