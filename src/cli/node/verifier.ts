import { setTimeout } from 'node:timers/promises'
import { type Id, isPaddockError, newId } from '../../core/index.ts'
import type { NodeVerification, Verified } from '../../rollout/index.ts'
import type { NodeClient } from './client.ts'
import type { NodeNews } from './news.ts'

export interface VerifierParts {
  readonly client: Pick<NodeClient, 'claimVerifications' | 'handInVerdict' | 'giveBack'>
  /** At once. */
  readonly places: number
  /** Throws the signal's reason, and `NODE_UNFIT` or `ENVIRONMENT_*` where this node cannot verify such work. */
  readonly verify: (one: NodeVerification, signal: AbortSignal) => Promise<Verified>
  readonly tell: (news: NodeNews) => void
}

interface AtWork {
  readonly lease: NodeVerification['lease']
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/** The coordinator keeps a claim until there is something; after an answer that came sooner nothing is asked for so long. */
const pauseMs = 500
/** After a fault of this node, so that it does not take at once what it just failed at. */
const afterFaultMs = 5000

/** A node's verifications: claims them beside its rollouts, under the same session, verifies, and hands the outcomes in. */
export class NodeVerifier {
  readonly #parts: VerifierParts
  readonly #running = new Map<Id, AtWork>()
  /** Environments that this node cannot verify. */
  readonly #unfit = new Set<string>()
  readonly #over = new AbortController()
  #faultAt = Number.NEGATIVE_INFINITY
  #ended: Promise<void> = Promise.resolve()

  constructor(parts: VerifierParts) {
    this.#parts = parts
  }

  /** Begins to claim. `session`: the one that claims now. */
  begin(session: () => Id): void {
    this.#ended = this.#run(session)
  }

  /** What is under way under a session. */
  held(session: Id): readonly NodeVerification['lease'][] {
    return [...this.#running.values()].flatMap(({ lease }) => (lease.session === session ? [lease] : []))
  }

  /** Somebody else has it, or nobody wants it any more. */
  stop(jobId: Id): void {
    this.#running.get(jobId)?.stop.abort(new Error('nobody waits for it'))
  }

  /** Ends what is under way. Its session, when it ends, gives it back. */
  async close(): Promise<void> {
    this.#over.abort(new Error('the node stops'))
    await this.#ended
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
  }

  async #run(session: () => Id): Promise<void> {
    const { client, places } = this.#parts
    const { signal } = this.#over
    const pause = (ms: number) => setTimeout(ms, undefined, { signal }).catch(() => undefined)
    while (!signal.aborted) {
      const free = Math.min(places - this.#running.size, 64)
      const sinceFault = performance.now() - this.#faultAt
      if (free <= 0) await Promise.race([...this.#running.values()].map(({ ended }) => ended))
      else if (sinceFault < afterFaultMs) await pause(afterFaultMs - sinceFault)
      else {
        const at = performance.now()
        const asked = { requestId: newId(), limit: free, without: [...this.#unfit] }
        // What is refused here the node's own claims and beats are refused too, and tell.
        const found = await client.claimVerifications(session(), asked, signal).catch(() => [])
        for (const one of found) this.#start(one)
        if (found.length === 0 && performance.now() - at < pauseMs) await pause(pauseMs)
      }
    }
  }

  #start(one: NodeVerification): void {
    const { lease } = one
    const stop = new AbortController()
    const signal = AbortSignal.any([stop.signal, this.#over.signal])
    const ended = this.#work(one, signal).finally(() => this.#running.delete(lease.jobId))
    this.#running.set(lease.jobId, { lease, stop, ended })
  }

  async #work(one: NodeVerification, signal: AbortSignal): Promise<void> {
    const { client, verify, tell } = this.#parts
    const { lease, order } = one
    const news = { job: lease.jobId, run: null } as const
    tell({ type: 'verifying', ...news, detail: order.task.name })
    try {
      const came = await verify(one, signal)
      if ('status' in came && came.status === 'infra_error') this.#faultAt = performance.now()
      const { repeated } = await client.handInVerdict(lease, came)
      tell({ type: 'verified', ...news, detail: `${repeated ? 'repeated, ' : ''}${lineOf(came)}` })
    } catch (error) {
      if (signal.aborted) return
      const line = isPaddockError(error) ? error.line() : String(error)
      tell({ type: 'given_back', ...news, detail: line })
      if (isPaddockError(error) && isUnfit.has(error.code)) this.#unfit.add(order.environment.name)
      await client.giveBack(lease, 'failure', line).catch(() => false)
    }
  }
}

const isUnfit: ReadonlySet<string> = new Set(['NODE_UNFIT', 'ENVIRONMENT_UNKNOWN', 'ENVIRONMENT_INVALID'])

function lineOf(came: Verified): string {
  if ('missing' in came) return came.missing
  return came.reward === null ? `${came.status}: ${came.reason}` : `${came.status} ${came.reward}`
}
