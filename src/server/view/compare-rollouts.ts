import type { Id } from '../../core/index.ts'
import type { CallRecord, RolloutView, StoreReader } from '../../trajectory/index.ts'
import { readMessage, tokenizerKey } from '../../read/index.ts'
import type { CallPair, RolloutComparison, RolloutSide } from './contract.ts'
import { readRollout } from './rollout-lines.ts'
import type { ReadSession } from './session-pages.ts'

const mostPairs = 2000

/** A rollout with its agent's conversation. */
interface Side {
  readonly view: RolloutView
  readonly about: RolloutSide
  readonly session: ReadSession | null
  readonly calls: readonly CallRecord[]
  /** Null: of several tokenizers, or of none that is known. */
  readonly tokenizer: string | null
}

/** Sets the conversations of two rollouts side by side, call by call. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
export async function compareRollouts(
  reader: StoreReader,
  sessionOf: (id: Id) => Promise<ReadSession>,
  ids: { readonly a: Id; readonly b: Id },
): Promise<RolloutComparison> {
  const [a, b] = [await sideOf(reader, sessionOf, ids.a), await sideOf(reader, sessionOf, ids.b)]
  const by = a.tokenizer !== null && a.tokenizer === b.tokenizer && hasIds(a) && hasIds(b) ? 'tokens' : 'words'
  const parts = (
    side: Side,
    at: number,
  ): { readonly prompt: ArrayLike<unknown>; readonly answer: ArrayLike<unknown> } => ({
    prompt: by === 'tokens' ? promptIds(side, at) : [],
    answer: by === 'tokens' ? answerIds(side, at) : answerText(side, at),
  })
  const pairs: CallPair[] = []
  let position: number | null = null
  let same = 0
  const count = Math.min(mostPairs, Math.max(a.calls.length, b.calls.length))
  for (let at = 0; at < count; at += 1) {
    const [left, right] = [a.calls[at], b.calls[at]]
    if (left === undefined || right === undefined) {
      pairs.push({
        a: left?.intent.seq ?? null,
        b: right?.intent.seq ?? null,
        isPromptSame: false,
        isAnswerSame: false,
      })
      continue
    }
    const [one, other] = [parts(a, at), parts(b, at)]
    const [inPrompt, inAnswer] = [differsAt(one.prompt, other.prompt), differsAt(one.answer, other.answer)]
    if (inPrompt === null && inAnswer === null && same === at) same += 1
    else if (same === at) position = inPrompt ?? inAnswer
    pairs.push({
      a: left.intent.seq,
      b: right.intent.seq,
      isPromptSame: inPrompt === null,
      isAnswerSame: inAnswer === null,
    })
  }
  const isTaskSame = a.view.taskDigest === b.view.taskDigest
  return { a: a.about, b: b.about, isTaskSame, by, same, pairs, position }
}

async function sideOf(
  { catalogue, recorder }: StoreReader,
  sessionOf: (id: Id) => Promise<ReadSession>,
  id: Id,
): Promise<Side> {
  const view = await catalogue.rollout(id)
  const { name } = await catalogue.task(view.taskDigest)
  const found = (await recorder.sessions({ rolloutId: id })).find(({ role }) => role === 'agent')
  const session = found === undefined ? null : await sessionOf(found.id)
  const calls = (session?.log.calls ?? []).filter(
    ({ intent, commit }) => intent.callClass === 'main' && commit !== null && commit.outcome.kind !== 'refused',
  )
  const tokenizers = new Set<string | null>()
  for (const digest of new Set(calls.map(({ intent }) => intent.fingerprint))) {
    tokenizers.add(digest === null ? null : tokenizerKey(await catalogue.fingerprint(digest)))
  }
  const { harness, end, status, reward } = readRollout(view, name).line
  const about = { id, runId: view.runId, task: name, harness, end, status, reward }
  return {
    view,
    about: { ...about, sessionId: found?.id ?? null, calls: calls.length },
    session,
    calls,
    tokenizer: tokenizers.size === 1 ? ([...tokenizers][0] ?? null) : null,
  }
}

function hasIds({ calls }: Side): boolean {
  return calls.every(({ commit }) => (commit?.choices ?? []).every(({ segmentId }) => segmentId !== null))
}

/** What a call brought before its answer: ids that no earlier call of its session had. */
function promptIds({ session, calls }: Side, at: number): readonly number[] {
  const id = calls[at]?.intent.id
  const own = session?.log.segments.filter(({ callId, choice }) => callId === id && choice === null) ?? []
  return own.flatMap(({ tokens }) => [...tokens])
}

function answerIds({ session, calls }: Side, at: number): readonly number[] {
  const choices = calls[at]?.commit?.choices ?? []
  return choices.flatMap(({ segmentId }) => [...(session?.segments.get(segmentId ?? '')?.tokens ?? [])])
}

function answerText({ calls }: Side, at: number): string {
  return (calls[at]?.commit?.choices ?? [])
    .map(({ message }) => {
      const { text, reasoning, toolCalls } = readMessage(parsed(message))
      return [reasoning ?? '', text, ...toolCalls.map((call) => `${call.name} ${call.argumentsText}`)].join('\n')
    })
    .join('\n')
}

/** The first place at which two sequences differ; null: nowhere. */
function differsAt(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number | null {
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at += 1) if (a[at] !== b[at]) return at
  return a.length === b.length ? null : shorter
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { role: 'assistant', content: text }
  }
}
