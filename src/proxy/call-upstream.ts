import type { CallSurroundings } from './call-contract.ts'
import type { SeenWeights, UpstreamRequest } from './upstream.ts'

/** The engine's side of one call: asked once, paused while the only reader is slow, and given back once. */
export class CallUpstream {
  private readonly around: Pick<CallSurroundings<never>, 'released'>
  private request: UpstreamRequest | null = null
  private isReleased = false
  private isPaused = false

  /** `released` is called once, when the engine has nothing more to do with the call. */
  constructor(around: Pick<CallSurroundings<never>, 'released'>) {
    this.around = around
  }

  get paused(): boolean {
    return this.isPaused
  }

  asked(request: UpstreamRequest): void {
    this.request = request
  }

  pause(): void {
    if (this.isPaused) return
    this.isPaused = true
    this.request?.pause()
  }

  /** False where it was not paused. */
  resume(): boolean {
    if (!this.isPaused) return false
    this.isPaused = false
    this.request?.resume()
    return true
  }

  /** Which weights sampled; null where the engine was not asked. `told`: what the reply said last. */
  weights(told: string | null): SeenWeights | Promise<SeenWeights> | null {
    return this.request === null ? null : this.request.weights(told)
  }

  /** Ends the request: the engine stops generating. */
  cut(): void {
    this.request?.abort()
    this.release()
  }

  release(): void {
    if (this.isReleased) return
    this.isReleased = true
    this.around.released()
  }

  letGo(): void {
    this.request = null
  }
}
