import { randomBytes } from 'node:crypto'
import { sha256 } from '../../core/index.ts'
import { type DraftFacts, scored, unscored, type VerdictDraft } from '../draft.ts'
import { Asker, type AskerOptions } from './ask.ts'
import { type JudgeCache, memoryCache } from './cache.ts'
import { bribes } from './bribes.ts'
import { type JudgeCase, makePrompt, promptDigest } from './prompt.ts'
import { type Canary, composeItems, type Rubric, type RubricItem, valueOf } from './rubric.ts'

export interface JudgeOptions extends AskerOptions {
  readonly rubric: Rubric
  /** Questions per item, odd; the majority counts. Default 1. */
  readonly votes?: number
  /** Asks each question also with choices and texts in reverse order; a vote that then differs does not count. Default false. */
  readonly swap?: boolean
  /** Share of the votes that must agree, more than a half. Default: any majority. */
  readonly agreement?: number
  /** Cases after which the canaries are asked again. Default 100. */
  readonly batch?: number
  readonly cache?: JudgeCache
}

export interface Judge {
  /**
   * Scores cases, canaries first. A judge that is out, or that misses a canary, gives `judge_failed` and no number.
   * Drafts come in the order of `cases`. Rejects only with the signal's reason.
   */
  score(cases: readonly JudgeCase[], o: { readonly signal: AbortSignal }): Promise<readonly VerdictDraft[]>
}

/** What the canaries came to: null, or which was missed. */
interface Probed {
  readonly failure: string | null
  readonly tokens: number
}

/** What the votes on one item came to. */
type ItemResult = { readonly item: string; readonly tokens: number; readonly told: string } & (
  | { readonly ok: true; readonly choice: string; readonly agreement: number }
  | { readonly ok: false; readonly why: string }
)

/** A judge by rubric over any OpenAI-compatible server. One call per item, vote and order. */
export function createJudge(options: JudgeOptions): Judge {
  return new RubricJudge(options)
}

class RubricJudge implements Judge {
  readonly #o: JudgeOptions
  readonly #votes: number
  readonly #batch: number
  readonly #asker: Asker
  readonly #cache: JudgeCache
  readonly #digest: string
  readonly #verifier: DraftFacts['verifier']
  // What makes marks unknowable to whoever wrote the texts.
  readonly #secret = randomBytes(16).toString('hex')
  /** Cases that may still be judged on the strength of the last canaries. */
  #trusted = 0
  #probing: Promise<Probed> | null = null

  constructor(o: JudgeOptions) {
    this.#o = o
    this.#votes = o.votes ?? 1
    if (!Number.isInteger(this.#votes) || this.#votes < 1 || this.#votes % 2 === 0) {
      throw new RangeError(`The number of votes must be odd, not ${this.#votes}.`)
    }
    this.#batch = o.batch ?? 100
    this.#asker = new Asker(o)
    this.#cache = o.cache ?? memoryCache()
    const { model, temperature = 0, maxTokens = 1024, structured = true } = o
    const settings = {
      model,
      temperature,
      maxTokens,
      structured,
      votes: this.#votes,
      swap: o.swap ?? false,
      agreement: o.agreement ?? 0,
    }
    this.#digest = sha256(JSON.stringify([promptDigest, o.rubric, settings]))
    this.#verifier = { id: `judge/${o.rubric.name}/${model}`, version: o.rubric.version, sha256: this.#digest }
  }

  async score(
    cases: readonly JudgeCase[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<readonly VerdictDraft[]> {
    const drafts: VerdictDraft[] = []
    for (let at = 0; at < cases.length;) {
      const { failure, tokens } = this.#trusted > 0 ? { failure: null, tokens: 0 } : await this.#probe(signal)
      const count = failure === null ? Math.max(1, this.#trusted) : this.#batch
      const part = cases.slice(at, at + count)
      at += part.length
      if (failure === null) {
        this.#trusted = Math.max(0, this.#trusted - part.length)
        const judged = await Promise.all(part.map((one) => this.#judge(one, signal)))
        drafts.push(
          ...judged.map((draft, i) => (i === 0 ? { ...draft, costTokens: draft.costTokens + tokens } : draft)),
        )
      } else
        drafts.push(...part.map((_, i) => this.#failed(failure, { evidence: '', costTokens: i === 0 ? tokens : 0 })))
    }
    return drafts
  }

  /** Callers that come together share one round of canaries; a caller that gives up does not give up for the others. */
  async #probe(signal: AbortSignal): Promise<Probed> {
    while (this.#probing !== null) {
      const probed = await this.#probing.catch(() => null)
      if (probed !== null) return probed
      signal.throwIfAborted()
    }
    this.#probing = this.#canaries(signal).finally(() => (this.#probing = null))
    return this.#probing
  }

  async #canaries(signal: AbortSignal): Promise<Probed> {
    const { rubric } = this.#o
    const probes = rubric.canaries.flatMap((canary) => withBribes(canary, rubric))
    const answers = await Promise.all(
      probes.map(async (canary) => {
        const item = rubric.items.find(({ name }) => name === canary.item)
        if (item === undefined) return { missed: null, tokens: 0 }
        // Never from the cache: the question is what the judge is like now.
        const result = await this.#item(item, canary, { signal, cached: false })
        const right = result.ok && result.choice === canary.choice
        const said = result.ok
          ? `it said ${JSON.stringify(result.choice)}, not ${JSON.stringify(canary.choice)}`
          : result.why
        return { missed: right ? null : `a canary of ${item.name} failed: ${said}`, tokens: result.tokens }
      }),
    )
    const failure = answers.find(({ missed }) => missed !== null)?.missed ?? null
    this.#trusted = failure === null ? this.#batch : 0
    return { failure, tokens: answers.reduce((sum, one) => sum + one.tokens, 0) }
  }

  async #judge(one: JudgeCase, signal: AbortSignal): Promise<VerdictDraft> {
    const { rubric } = this.#o
    const results = await Promise.all(rubric.items.map((item) => this.#item(item, one, { signal, cached: true })))
    const facts = {
      evidence: results.map((result) => result.told).join('\n'),
      costTokens: results.reduce((sum, result) => sum + result.tokens, 0),
    }
    const values: Record<string, number> = {}
    const components: Record<string, number> = {}
    for (const [i, result] of results.entries()) {
      if (!result.ok) return this.#failed(`${result.item}: ${result.why}`, facts)
      const item = rubric.items[i]
      if (item === undefined) continue
      values[item.name] = valueOf(item, result.choice)
      if (this.#votes > 1) components[`${item.name}_agreement`] = result.agreement
    }
    return scored(composeItems(rubric, values), {
      ...facts,
      verifier: this.#verifier,
      trust: 'host',
      components: { ...values, ...components },
    })
  }

  #failed(reason: string, facts: { readonly evidence: string; readonly costTokens: number }): VerdictDraft {
    return unscored('judge_failed', reason, { ...facts, verifier: this.#verifier, trust: 'host' })
  }

  async #item(
    item: RubricItem,
    one: JudgeCase,
    o: { readonly signal: AbortSignal; readonly cached: boolean },
  ): Promise<ItemResult> {
    const votes = await Promise.all(Array.from({ length: this.#votes }, (_, vote) => this.#vote(item, one, vote, o)))
    const tokens = votes.reduce((sum, vote) => sum + vote.tokens, 0)
    const told = votes.map((vote) => `${item.name}: ${vote.told}`).join('\n')
    const counts = new Map<string, number>()
    for (const { choice } of votes) if (choice !== null) counts.set(choice, (counts.get(choice) ?? 0) + 1)
    const [best] = [...counts].toSorted(([, a], [, b]) => b - a)
    const wanted = Math.max(this.#o.agreement ?? 0, 0.5)
    const share = (best?.[1] ?? 0) / votes.length
    const common = { item: item.name, tokens, told }
    if (best !== undefined && (share > wanted || (share === wanted && wanted > 0.5))) {
      return { ...common, ok: true, choice: best[0], agreement: share }
    }
    if (counts.size === 0) return { ...common, ok: false, why: votes[0]?.told ?? 'no vote' }
    const split = [...counts].map(([choice, count]) => `${choice} ${count}`).join(', ')
    return { ...common, ok: false, why: `${votes.length} votes do not agree (${split})` }
  }

  /** One vote; `choice` null: it does not count. */
  async #vote(
    item: RubricItem,
    one: JudgeCase,
    vote: number,
    o: { readonly signal: AbortSignal; readonly cached: boolean },
  ): Promise<{ readonly choice: string | null; readonly told: string; readonly tokens: number }> {
    const orders = this.#o.swap === true ? [false, true] : [false]
    const answers = await Promise.all(orders.map((swapped) => this.#ask(item, one, { ...o, vote, swapped })))
    const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0)
    const [first, second] = answers
    if (first === undefined || !first.ok) return { choice: null, told: first?.why ?? 'no answer', tokens }
    const { choice, explanation } = first.judged
    if (second !== undefined && !second.ok) return { choice: null, told: second.why, tokens }
    if (second !== undefined && second.judged.choice !== choice) {
      return { choice: null, told: `said ${choice}, and ${second.judged.choice} with the order reversed`, tokens }
    }
    return { choice, told: `${choice}: ${explanation.slice(0, 600)}`, tokens }
  }

  async #ask(
    item: RubricItem,
    one: JudgeCase,
    o: { readonly signal: AbortSignal; readonly cached: boolean; readonly vote: number; readonly swapped: boolean },
  ) {
    const { question, answer, reference } = one
    const content = JSON.stringify([this.#digest, item, o.vote, o.swapped, question, answer, reference])
    const key = sha256(content)
    const known = o.cached ? await this.#cache.get(key) : null
    if (known !== null) return { ok: true as const, judged: known, tokens: 0 }
    const prompt = makePrompt(item, one, { swapped: o.swapped, secret: this.#secret })
    const asked = await this.#asker.ask(item, prompt, { vote: o.vote, signal: o.signal })
    if (asked.ok && o.cached) await this.#cache.put(key, asked.judged)
    return asked
  }
}

/** A canary itself, and where it deserves less than the best, the same answer with words that ask for more. */
function withBribes(canary: Canary, rubric: Rubric): readonly Canary[] {
  const item = rubric.items.find(({ name }) => name === canary.item)
  if (item === undefined || canary.choice !== (item.weight > 0 ? item.choices[0] : item.choices.at(-1))) return [canary]
  const wished = (item.weight > 0 ? item.choices.at(-1) : item.choices[0]) ?? ''
  return [canary, ...bribes(wished).map((words) => ({ ...canary, answer: `${canary.answer}\n\n${words}` }))]
}
