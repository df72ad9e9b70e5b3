import { type Id, PaddockError } from '../../core/index.ts'
import { type Continuation, type ProbeAnswer, type Proxy, showsMedia } from '../../proxy/index.ts'
import { promptOfCall, sampledTokens, type SessionLog, type Store } from '../../trajectory/index.ts'
import { defaultProbeTokens, trainerRunOf } from './run-config.ts'
import { ruleOf, type TextVerifier } from './text-verifier.ts'

/** A wish for continuations of a recorded call. */
export interface AskedProbe {
  readonly callId: Id
  /** Also its answer, up to so many tokens of it (null: all); null: its prompt alone. */
  readonly answer: { readonly choice: number; readonly offset: number | null } | null
  /** Ids, or a text that the engine turns into ids; null: nothing. */
  readonly suffix: string | readonly number[] | null
  readonly k: number
  readonly maxTokens: number
  readonly temperature: number
  /** Null: no continuation has a value. */
  readonly verifier: TextVerifier | null
  readonly signal: AbortSignal
}

export interface Probed extends Omit<ProbeAnswer, 'continuations'> {
  readonly promptTokens: number
  readonly continuations: readonly (Continuation & { readonly value: number | null; readonly why: string | null })[]
  /** Of the run: what its probes may sample, and have. */
  readonly budget: { readonly tokens: number; readonly spent: number }
}

export interface ProbesParts {
  readonly store: Pick<Store, 'recorder' | 'catalogue'>
  readonly proxy: Pick<Proxy, 'engineOf'>
}

/** Tokens that probes of a run have sampled, or may be about to. */
interface Spent {
  tokens: number
}

/** Continuations of recorded calls, for whoever trains: under a budget of their run, and valued by a rule over their text alone. */
export class Probes {
  readonly #parts: ProbesParts
  readonly #spent = new Map<Id, Promise<Spent>>()

  constructor(parts: ProbesParts) {
    this.#parts = parts
  }

  /** Throws `NOT_FOUND`, `PROBE_REFUSED`, `PROBE_BUDGET`, `BODY_INVALID_SHAPE`, and what the proxy throws. */
  async probe(asked: AskedProbe): Promise<Probed> {
    const { recorder, catalogue } = this.#parts.store
    const rule = asked.verifier === null ? null : ruleOf(asked.verifier)
    const sessionId = await recorder.sessionOfCall(asked.callId)
    const log = await recorder.session(sessionId)
    const { rolloutId, policy } = log.session
    if (rolloutId === null) throw refused('the call belongs to no rollout, hence to no run whose budget it could have')
    const prefix = prefixOf(log, asked)
    const suffix = await this.#suffix(asked.suffix, policy.name ?? null)
    const ids = Int32Array.from([...prefix, ...suffix])
    const { runId } = await catalogue.rollout(rolloutId)
    const tokens = trainerRunOf(await catalogue.run(runId)).probeTokens ?? defaultProbeTokens
    const spent = await this.#spentBy(runId)
    const most = asked.k * asked.maxTokens
    if (spent.tokens + most > tokens) {
      const left = Math.max(0, tokens - spent.tokens)
      throw new PaddockError(
        'PROBE_BUDGET',
        `probes of run ${runId} may sample ${left} more tokens, and ${most} are asked for`,
        {
          data: { tokens, spent: spent.tokens, asked: most },
        },
      )
    }
    // Taken before it is asked: probes that run at the same time share the budget.
    spent.tokens += most
    let sampled = 0
    try {
      const { continuations, ...answer } = await this.#parts.proxy.engineOf(policy.name ?? null).probe({
        of: asked.callId,
        rolloutId,
        ids,
        model: policy.model ?? modelOf(log, asked.callId),
        k: asked.k,
        maxTokens: asked.maxTokens,
        temperature: asked.temperature,
        signal: asked.signal,
      })
      sampled = continuations.reduce((sum, one) => sum + one.ids.length, 0)
      spent.tokens += sampled - most
      return {
        ...answer,
        promptTokens: ids.length,
        continuations: await Promise.all(
          continuations.map(async (one) => {
            const found = rule === null ? null : await rule(one.text)
            return { ...one, value: found?.value ?? null, why: found?.why ?? null }
          }),
        ),
        budget: { tokens, spent: spent.tokens },
      }
    } catch (cause) {
      // What was sampled of it is read from the record, as after a restart.
      this.#spent.delete(runId)
      throw cause
    }
  }

  async #suffix(suffix: AskedProbe['suffix'], policy: string | null): Promise<readonly number[]> {
    if (suffix === null) return []
    return typeof suffix === 'string' ? this.#parts.proxy.engineOf(policy).textIds(suffix) : suffix
  }

  #spentBy(runId: Id): Promise<Spent> {
    const known = this.#spent.get(runId)
    if (known !== undefined) return known
    const read = this.#read(runId)
    this.#spent.set(runId, read)
    read.catch(() => this.#spent.delete(runId))
    return read
  }

  /** Of probes that ended. */
  async #read(runId: Id): Promise<Spent> {
    const { recorder, catalogue } = this.#parts.store
    let tokens = 0
    for (const { id: rolloutId } of await catalogue.rollouts({ runId })) {
      for (const { id, role } of await recorder.sessions({ rolloutId })) {
        if (role === 'probe') tokens += sampledTokens(await recorder.session(id, { bodies: [] }))
      }
    }
    return { tokens }
  }
}

function prefixOf(log: SessionLog, { callId, answer }: AskedProbe): Int32Array {
  const path = promptOfCall(log, callId)
  const call = log.calls.find(({ intent }) => intent.id === callId)
  if (path === null || call === undefined) throw refused('no ids of its prompt are recorded')
  if (showsMedia(log, call)) throw refused('its prompt holds images or sound, which ids alone do not say')
  if (answer === null) return path.prompt
  const sampled = path.answers.get(answer.choice)
  if (sampled === undefined) throw refused(`it has no ids of an answer ${answer.choice}`)
  const offset = answer.offset ?? sampled.length
  if (offset > sampled.length) throw refused(`its answer has ${sampled.length} tokens, and ${offset} are asked for`)
  return Int32Array.from([...path.prompt, ...sampled.subarray(0, offset)])
}

function modelOf(log: SessionLog, callId: Id): string | null {
  return log.calls.find(({ intent }) => intent.id === callId)?.intent.lineage.modelAsked ?? null
}

function refused(why: string): PaddockError {
  return new PaddockError('PROBE_REFUSED', `The call is not probed: ${why}.`)
}
