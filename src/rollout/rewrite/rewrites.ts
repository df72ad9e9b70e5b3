import { type Id, PaddockError } from '../../core/index.ts'
import { Gate } from '../gate.ts'
import type { Rewrite } from './edits.ts'
import { rewriteRollouts, type RewriteOptions, type RewriteReport } from './rewrite.ts'

/** Requests that are under way or wait, beyond which none is taken. */
const mostWaiting = 16

export type RewritesParts = Omit<RewriteOptions, 'rewrites' | 'name' | 'signal'>

/** Rewrites of one rollout, as somebody asks for them. */
export interface AskedRewrites {
  readonly rolloutId: Id
  readonly rewrites: readonly Rewrite[]
  /** Of the run that they come into. */
  readonly name: string
  readonly signal: AbortSignal
}

/** Makes rewrites for whoever asks over the network, one request after the other, so that their verifications are never more than those of one. */
export class Rewrites {
  readonly #parts: RewritesParts
  readonly #gate = new Gate(1)
  #waiting = 0

  constructor(parts: RewritesParts) {
    this.#parts = parts
  }

  /**
   * All of them or none. The same ones a second time are the same run. Throws `VERIFY_FULL`, what {@link rewriteRollouts} throws, and the
   * signal's reason.
   */
  async rewrite({ rolloutId, rewrites, name, signal }: AskedRewrites): Promise<RewriteReport> {
    if (this.#waiting >= mostWaiting) {
      throw new PaddockError('VERIFY_FULL', `${this.#waiting} requests to rewrite are under way or wait`)
    }
    this.#waiting += 1
    try {
      using _place = await this.#gate.enter(signal)
      const asked = rewrites.map((rewrite, nth) => ({ rolloutId, rewrite, place: `rewrites.${nth}` }))
      return await rewriteRollouts({ ...this.#parts, rewrites: asked, name, signal })
    } finally {
      this.#waiting -= 1
    }
  }
}
