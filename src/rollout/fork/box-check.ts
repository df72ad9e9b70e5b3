import { type EventBody, type Id, PaddockError } from '../../core/index.ts'
import { type BoxNeeds, openTaskBox } from '../../envs/index.ts'
import type { Box, BoxLabels, SandboxProvider } from '../../sandbox/index.ts'
import type { AgentClock } from '../agent-clock.ts'
import { bundleRoot, harnessHome } from '../agent.ts'
import { differingFiles } from './compare-boxes.ts'

/** What a replayed box is compared with, and when. */
export interface KeptBox {
  /** Of the parent, when it asked the call to fork at. */
  readonly image: string
  readonly callId: Id
  /** Answered calls of the conversation before that. */
  readonly answered: number
}

interface BoxCheckOptions {
  readonly sandbox: SandboxProvider
  readonly needs: BoxNeeds
  readonly labels: BoxLabels
  readonly kept: KeptBox
  /** Whether a difference ends the agent. */
  readonly refuses: boolean
  readonly emit: (event: EventBody) => void
}

/** What differs from one process to the next: programs' own files, times that git notes, what the daemon lays over a box. */
const noise = [
  ...[harnessHome, bundleRoot, '/tmp', '/var/tmp', '/run', '/logs', '/proc', '/sys', '/dev'].map(
    (path) => new RegExp(`^${path}(/|$)`),
  ),
  /^\/(etc\/(hosts|hostname|resolv\.conf)|\.dockerenv)$/,
  /\/\.git(\/|$)/,
]

/**
 * At the fork of a replay: whether the files that its tools made are those that the parent's box had there, where that was kept. A
 * difference is told as the event `replay` with the phase `box_diverged`, and ends the agent where divergence is refused.
 */
export class BoxCheck {
  readonly #o: BoxCheckOptions
  readonly #fault = new AbortController()
  #at: { readonly box: Box; readonly clock: AgentClock } | null = null
  #answered = 0
  #done: Promise<void> | null = null

  constructor(options: BoxCheckOptions) {
    this.#o = options
  }

  /** Fires with `BOX_DIVERGED`, and with what kept the boxes from being compared. */
  get fault(): AbortSignal {
    return this.#fault.signal
  }

  open(box: Box, clock: AgentClock): void {
    this.#at = { box, clock }
  }

  /** A call of the conversation was answered. */
  noteAnswer(): void {
    this.#answered += 1
  }

  /** To be awaited before a request of the conversation is answered. Rejects with what {@link fault} fires with. */
  atRequest(): Promise<void> {
    if (this.#answered !== this.#o.kept.answered || this.#at === null) return Promise.resolve()
    this.#done ??= this.#compare(this.#at).catch((error: unknown) => {
      this.#fault.abort(error)
      throw error
    })
    return this.#done
  }

  async #compare({ box, clock }: { readonly box: Box; readonly clock: AgentClock }): Promise<void> {
    const { sandbox, needs, labels, kept, refuses, emit } = this.#o
    using _held = clock.hold()
    const { setupNetwork: _without, ...rest } = needs
    const image = { kind: 'reference' as const, reference: kept.image }
    await using parents = await openTaskBox(sandbox, { ...rest, image, network: 'none' }, { labels })
    const differing = await differingFiles(parents, box, (path) => noise.some((one) => one.test(path)))
    if (differing === null)
      return emit({ kind: 'label', name: 'box_not_compared', value: 'its files cannot be listed, or are too many' })
    const [first] = differing
    if (first === undefined) return
    const detail = `${differing.length} files are other than then: ${differing.slice(0, 5).join(', ')}`
    emit({ kind: 'replay', phase: 'box_diverged', callId: null, of: kept.callId, detail })
    if (refuses) throw new PaddockError('BOX_DIVERGED', `The replayed box is not its parent's: ${detail}.`)
  }
}
