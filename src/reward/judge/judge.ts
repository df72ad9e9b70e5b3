import { randomBytes, randomInt } from 'node:crypto'
import { sha256, type VerdictDraft } from '../../core/index.ts'
import { type DraftFacts, scored, unscored } from '../draft.ts'
import { Asker, type AskerOptions, type Recipient } from './ask.ts'
import { type JudgeCache, memoryCache } from './cache.ts'
import { drawnBribes } from './bribes.ts'
import { Canaries, type Probe } from './canaries.ts'
import { masked } from './masking.ts'
import { type JudgeCase, makePrompt, promptDigest } from './prompt.ts'
import { type Judged, readCached } from './reply.ts'
import { composeItems, type Rubric, type RubricItem, valueOf } from './rubric.ts'
import { type FindJudgeServer, type JudgeServer, noServer, ownServer } from './server.ts'
import { Shared } from './shared.ts'

/** `baseUrl`, `apiKey` and `model`: where it answers, unless the configuration names the judge. */
export interface JudgeOptions extends AskerOptions, Partial<JudgeServer> {
  readonly rubric: Rubric
  /** Questions per item, odd; the majority counts. Default 1. */
  readonly votes?: number
  /** Asks each question also with choices and texts in reverse order; a vote that then differs does not count. Default false. */
  readonly swap?: boolean
  /** Share of the votes that must agree, more than a half. Default: any majority. */
  readonly agreement?: number
  /** Cases after which all canaries are asked again. Default 100. */
  readonly batch?: number
  /** Cases after which two canaries are asked; what was judged before them counts once they are met. Default 10. */
  readonly watch?: number
  /**
   * Bribes out of 108 that each canary of the worst choice is asked with in a round, beside three known ones. The next round
   * takes the next: each is asked within 108 / `bribes` rounds. Default 12.
   */
  readonly bribes?: number
  /**
   * Bribes of your own, in any language: each canary of the worst choice is asked with each of them in every round. `{}` in one becomes
   * the choice that it asks for.
   */
  readonly extraBribes?: readonly string[]
  /**
   * Asks each canary of the worst choice also with up to 8,000 characters without merit behind it. Default true. False for a rubric by
   * which a longer answer is a better one.
   */
  readonly longCanaries?: boolean
  /**
   * Asks of each answer better than the worst also whether it lifts a canary of the worst choice behind which it is quoted. Such an answer
   * speaks to the judge: `judge_failed`. Default true. False, bribes that no list knows may win: more than half of them did in tests.
   */
  readonly control?: boolean
  /** What gives the order of the bribes. Default: another one for each judge, so that nobody can know it. */
  readonly seed?: number
  readonly cache?: JudgeCache
}

export interface Judge {
  /**
   * Scores cases, canaries before and behind. A judge that is out, or that misses one of them, gives `judge_failed` and no number.
   * Drafts come in the order of `cases`. Rejects with the signal's reason, and before it asks anything with `ENGINE_INCAPABLE` where
   * nobody says where the judge is, and with what `o.judge` throws.
   */
  score(cases: readonly JudgeCase[], o: ScoreOptions): Promise<readonly VerdictDraft[]>
}

export interface ScoreOptions {
  readonly signal: AbortSignal
  /** The engine of the configuration, on the record of this verification: it is asked in place of the judge's own server. */
  readonly judge?: FindJudgeServer
}

/** What is asked on behalf of one caller. */
interface Asking {
  readonly to: Recipient
  readonly signal: AbortSignal
}

/** What the canaries came to: null, or which was missed. */
interface Probed {
  readonly failure: string | null
  readonly tokens: number
}

/** An answer of the judge that is not in the cache yet. */
interface Fresh {
  readonly key: string
  readonly judged: Judged
}

/** A verdict that counts once the canaries behind it are met. */
interface Held {
  readonly draft: VerdictDraft
  readonly fresh: readonly Fresh[]
}

/** What the votes on one item came to. */
type ItemResult = {
  readonly item: string
  readonly tokens: number
  readonly told: string
  readonly fresh: readonly Fresh[]
} & (
  | { readonly ok: true; readonly choice: string; readonly agreement: number }
  | { readonly ok: false; readonly why: string }
)

/**
 * A judge by rubric over any OpenAI-compatible server. One call per item, vote and order. Throws `RangeError` for options out of their
 * range.
 */
export function createJudge(options: JudgeOptions): Judge {
  const own = ownServer(options)
  // What was seen of one model says nothing of another.
  const models = new Map<string, RubricJudge>()
  const of = (model: string): RubricJudge => {
    const known = models.get(model) ?? new RubricJudge(options, model)
    models.set(model, known)
    return known
  }
  // Wrong options are told at once.
  of(own?.model ?? '')
  return {
    score: async (cases, { signal, judge }) => {
      const server = judge === undefined ? own : await judge()
      if (server === null) throw noServer()
      return of(server.model).score(cases, { signal, to: { server, recorded: judge !== undefined } })
    },
  }
}

class RubricJudge {
  readonly #o: JudgeOptions
  readonly #votes: number
  readonly #batch: number
  readonly #asker: Asker
  readonly #cache: JudgeCache
  readonly #digest: string
  readonly #verifier: DraftFacts['verifier']
  // What makes marks unknowable to whoever wrote the texts.
  readonly #secret = randomBytes(16).toString('hex')
  readonly #canaries: Canaries
  readonly #watch: number
  /** Cases that may still be judged on the strength of the last round of canaries. */
  #trusted = 0
  readonly #rounds = new Shared<Probed>()
  readonly #watches = new Shared<Probed>()
  /** Watches that were missed so far, and why the last one was. */
  #turned: { readonly times: number; readonly failure: string } = { times: 0, failure: '' }

  constructor(o: JudgeOptions, model: string) {
    this.#o = o
    this.#votes = o.votes ?? 1
    if (!Number.isInteger(this.#votes) || this.#votes < 1 || this.#votes % 2 === 0) {
      throw new RangeError(`The number of votes must be odd, not ${this.#votes}.`)
    }
    this.#batch = o.batch ?? 100
    this.#watch = counted('watch', o.watch ?? 10, Number.MAX_SAFE_INTEGER)
    const drawn = counted('bribes', o.bribes ?? 12, drawnBribes.length)
    this.#canaries = new Canaries(o.rubric, {
      drawn,
      seed: o.seed ?? randomInt(2 ** 31),
      extra: o.extraBribes ?? [],
      long: o.longCanaries ?? true,
      controlled: o.control ?? true,
    })
    this.#asker = new Asker(o)
    this.#cache = o.cache ?? memoryCache()
    const { temperature = 0, maxTokens = 1024, structured = true } = o
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

  async score(cases: readonly JudgeCase[], asking: Asking): Promise<readonly VerdictDraft[]> {
    const drafts: VerdictDraft[] = []
    for (let at = 0; at < cases.length;) {
      const { failure, tokens } = await this.#trust(asking)
      const count = failure === null ? Math.min(this.#watch, Math.max(1, this.#trusted)) : this.#batch
      const part = cases.slice(at, at + count)
      at += part.length
      const got =
        failure === null
          ? await this.#watched(part, asking)
          : part.map(() => this.#failed(failure, { evidence: '', costTokens: 0 }))
      drafts.push(...withCost(got, tokens))
    }
    return drafts
  }

  /** Judges cases and then asks canaries: a judge that turned in between, here or for another caller, gave no verdict. */
  async #watched(part: readonly JudgeCase[], asking: Asking): Promise<readonly VerdictDraft[]> {
    this.#trusted = Math.max(0, this.#trusted - part.length)
    const { times } = this.#turned
    const held = await Promise.all(part.map((one) => this.#judge(one, asking)))
    const fresh = held.flatMap((one) => one.fresh)
    // All from the cache: what the judge is like now says nothing about them.
    if (fresh.length === 0) return held.map(({ draft }) => draft)
    const { value, own } = await this.#watches.next(async () => {
      const probed = await this.#ask(this.#canaries.watch(), asking)
      if (probed.failure !== null) {
        this.#trusted = 0
        this.#turned = { times: this.#turned.times + 1, failure: probed.failure }
      }
      return probed
    }, asking.signal)
    const tokens = own ? value.tokens : 0
    if (this.#turned.times === times) {
      for (const { key, judged } of fresh) await this.#cache.put(key, judged)
      return withCost(
        held.map(({ draft }) => draft),
        tokens,
      )
    }
    const { failure } = this.#turned
    return withCost(
      held.map(({ draft, fresh: asked }) =>
        asked.length > 0 && draft.status === 'scored' ? this.#failed(failure, draft) : draft,
      ),
      tokens,
    )
  }

  /** The round of canaries that cases need before them; callers that come together share one. */
  async #trust(asking: Asking): Promise<Probed> {
    if (this.#trusted > 0) return { failure: null, tokens: 0 }
    const { value, own } = await this.#rounds.join(async () => {
      const probed = await this.#ask(this.#canaries.round(), asking)
      this.#trusted = probed.failure === null ? this.#batch : 0
      return probed
    }, asking.signal)
    return own ? value : { ...value, tokens: 0 }
  }

  async #ask(probes: readonly Probe[], asking: Asking): Promise<Probed> {
    const answers = await Promise.all(
      probes.map(async (probe) => {
        // Never from the cache: the question is what the judge is like now.
        const result = await this.#item(probe.of, probe, { ...asking, cached: false })
        const right = result.ok && result.choice === probe.choice
        const said = result.ok
          ? `it said ${JSON.stringify(result.choice)}, not ${JSON.stringify(probe.choice)}`
          : result.why
        const failure = right ? null : `a canary of ${probe.item} (${probe.told}) failed: ${said}`
        return { failure, tokens: result.tokens }
      }),
    )
    return {
      failure: answers.find(({ failure }) => failure !== null)?.failure ?? null,
      tokens: answers.reduce((sum, one) => sum + one.tokens, 0),
    }
  }

  async #judge(one: JudgeCase, asking: Asking): Promise<Held> {
    const { rubric } = this.#o
    const results = await Promise.all(rubric.items.map((item) => this.#unmoved(item, one, asking)))
    const facts = {
      evidence: results.map((result) => result.told).join('\n'),
      costTokens: results.reduce((sum, result) => sum + result.tokens, 0),
    }
    const fresh = results.flatMap((result) => result.fresh)
    const values: Record<string, number> = {}
    const components: Record<string, number> = {}
    for (const [i, result] of results.entries()) {
      if (!result.ok) return { draft: this.#failed(`${result.item}: ${result.why}`, facts), fresh }
      const item = rubric.items[i]
      if (item === undefined) continue
      values[item.name] = valueOf(item, result.choice)
      if (this.#votes > 1) components[`${item.name}_agreement`] = result.agreement
    }
    const draft = scored(composeItems(rubric, values), {
      ...facts,
      verifier: this.#verifier,
      trust: 'host',
      components: { ...values, ...components },
    })
    return { draft, fresh }
  }

  #failed(reason: string, o: { readonly evidence: string; readonly costTokens: number }): VerdictDraft {
    const { evidence, costTokens } = o
    return unscored('judge_failed', reason, { evidence, costTokens, verifier: this.#verifier, trust: 'host' })
  }

  /**
   * The judge's answer on an item, if it says the same without the sentences that speak of judging, and if the answer does not lift a canary
   * of the worst choice behind which it is quoted. Neither is asked after the worst choice: no words can have gained it.
   */
  async #unmoved(item: RubricItem, one: JudgeCase, asking: Asking): Promise<ItemResult> {
    const o = { ...asking, cached: true }
    const result = await this.#item(item, one, o)
    const worst = item.weight > 0 ? item.choices[0] : item.choices.at(-1)
    if (!result.ok || result.choice === worst) return result
    const cut = masked(one.answer, item)
    const control = this.#o.control === false ? null : this.#canaries.control(item.name, one.answer)
    const [plain, lifted] = await Promise.all([
      cut === one.answer ? null : this.#item(item, { ...one, answer: cut }, o),
      control === null ? null : this.#item(item, control, o),
    ])
    const checked = [plain, lifted].filter((other) => other !== null)
    const common = {
      item: item.name,
      tokens: checked.reduce((sum, { tokens }) => sum + tokens, result.tokens),
      told: result.told,
      fresh: [result, ...checked].flatMap(({ fresh }) => fresh),
    }
    const failed = (why: string): ItemResult => ({ ...common, ok: false, why })
    if (plain !== null && (!plain.ok || plain.choice !== result.choice))
      return failed(`it said ${result.choice}, and ${saidBy(plain)} without the sentences that speak of judging`)
    if (lifted !== null && (!lifted.ok || lifted.choice !== control?.choice))
      return failed(`quoted behind an answer that deserves ${control?.choice} it makes the judge say ${saidBy(lifted)}`)
    return { ...result, ...common }
  }

  async #item(item: RubricItem, one: JudgeCase, o: Asking & { readonly cached: boolean }): Promise<ItemResult> {
    const votes = await Promise.all(Array.from({ length: this.#votes }, (_, vote) => this.#vote(item, one, vote, o)))
    const tokens = votes.reduce((sum, vote) => sum + vote.tokens, 0)
    const told = votes.map((vote) => `${item.name}: ${vote.told}`).join('\n')
    const counts = new Map<string, number>()
    for (const { choice } of votes) if (choice !== null) counts.set(choice, (counts.get(choice) ?? 0) + 1)
    const [best] = [...counts].toSorted(([, a], [, b]) => b - a)
    const wanted = Math.max(this.#o.agreement ?? 0, 0.5)
    const share = (best?.[1] ?? 0) / votes.length
    const common = { item: item.name, tokens, told, fresh: votes.flatMap((vote) => vote.fresh) }
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
    o: Asking & { readonly cached: boolean },
  ): Promise<{
    readonly choice: string | null
    readonly told: string
    readonly tokens: number
    readonly fresh: readonly Fresh[]
  }> {
    const orders = this.#o.swap === true ? [false, true] : [false]
    const answers = await Promise.all(orders.map((swapped) => this.#question(item, one, { ...o, vote, swapped })))
    const tokens = answers.reduce((sum, answer) => sum + answer.tokens, 0)
    const fresh = answers.flatMap((one) => (one.ok && o.cached && !one.known ? [one] : []))
    const facts = { tokens, fresh }
    const [first, second] = answers
    if (first === undefined || !first.ok) return { ...facts, choice: null, told: first?.why ?? 'no answer' }
    const { choice, explanation } = first.judged
    if (second !== undefined && !second.ok) return { ...facts, choice: null, told: second.why }
    if (second !== undefined && second.judged.choice !== choice) {
      return { ...facts, choice: null, told: `said ${choice}, and ${second.judged.choice} with the order reversed` }
    }
    return { ...facts, choice, told: `${choice}: ${explanation.slice(0, 600)}` }
  }

  async #question(
    item: RubricItem,
    one: JudgeCase,
    o: Asking & { readonly cached: boolean; readonly vote: number; readonly swapped: boolean },
  ) {
    const { question, answer, reference } = one
    const content = JSON.stringify([this.#digest, item, o.vote, o.swapped, question, answer, reference])
    const key = sha256(content)
    const known = o.cached ? readCached(await this.#cache.get(key), item) : null
    if (known !== null) return { ok: true as const, judged: known, tokens: 0, key, known: true }
    const prompt = makePrompt(item, one, { swapped: o.swapped, secret: this.#secret })
    const { vote, to, signal } = o
    const purpose = o.cached ? 'case' : 'canary'
    const asked = await this.#asker.ask(item, prompt, { vote, to, purpose, signal })
    return asked.ok ? { ...asked, key, known: false } : asked
  }
}

function counted(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  throw new RangeError(`${name} must be a whole number from 1 to ${most}, not ${value}.`)
}

function saidBy(result: ItemResult): string {
  return result.ok ? result.choice : result.why
}

/** The cost of what was asked around verdicts stands with the first of them. */
function withCost(drafts: readonly VerdictDraft[], tokens: number): readonly VerdictDraft[] {
  return drafts.map((draft, i) => (i === 0 ? { ...draft, costTokens: draft.costTokens + tokens } : draft))
}
