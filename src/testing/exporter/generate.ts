/**
 * Rollouts as a store would give them, made up by fast-check: shared prefixes, siblings, untrained classes, tokens
 * without logprob, awkward numbers and texts. The generator knows what every sampled token is, so its accounting is
 * independent of any row builder.
 */
import fc from 'fast-check'
import { idMaker, PaddockError, sha256 } from '../../core/index.ts'
import type { EngineFingerprint, LogprobKind, SamplingParams } from '../../core/index.ts'
import type {
  CountedAttempt,
  ExportRollout,
  MaskReason,
  Row,
  RowSegment,
  Selection,
  SelectionSummary,
  TokenAccounting,
  TrainerNeeds,
} from '../../trajectory/index.ts'
import { countedAttempt, noNeeds, nullShareOf } from '../../trajectory/index.ts'

/** Rollouts with the truth about their sampled tokens. */
export interface GeneratedSelection {
  readonly rollouts: readonly ExportRollout[]
  readonly accounting: TokenAccounting
  readonly fingerprint: EngineFingerprint
  /** A fresh pass over the rollouts. */
  open(): Selection
}

/** The engine that all generated rows name. */
export const generatedFingerprint: EngineFingerprint = {
  engine: 'vllm',
  version: '0.12.0',
  model: 'generated',
  tokenizer: 'generated-bpe',
  chatTemplate: null,
  parsers: null,
  logprobKind: 'raw',
  speculative: null,
  quantisation: null,
}

interface Turn {
  readonly prompt: readonly number[]
  /** Sibling answers; the last one is continued. */
  readonly answers: readonly { readonly ids: readonly number[]; readonly logprobs: readonly number[] }[]
  readonly text: string
}

interface RolloutSeed {
  readonly turns: readonly Turn[]
  readonly mainClass: boolean
  readonly gaps: boolean
  readonly reward: number
  readonly version: string | null
}

const tokenIds = (minLength: number): fc.Arbitrary<readonly number[]> =>
  fc.array(fc.oneof(fc.nat(151_935), fc.constant(2_147_483_647)), { minLength, maxLength: 12 })

const logprob = fc.oneof(
  fc.float({ min: -30, max: 0, noNaN: true }),
  fc.constantFrom(0, -0, -9999, Math.fround(-1e-38), Math.fround(-0.1)),
)

const answer = tokenIds(1).chain((ids) =>
  fc.record({
    ids: fc.constant(ids),
    logprobs: fc.array(logprob, { minLength: ids.length, maxLength: ids.length }),
  }),
)

const turn: fc.Arbitrary<Turn> = fc.record({
  prompt: tokenIds(1),
  answers: fc.array(answer, { minLength: 1, maxLength: 3 }),
  text: fc.oneof(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.constant('{"x": 1.0,\n "y": "\\u2028"}')),
})

const rolloutSeed: fc.Arbitrary<RolloutSeed> = fc.record({
  turns: fc.array(turn, { minLength: 1, maxLength: 4 }),
  mainClass: fc.boolean(),
  gaps: fc.boolean(),
  reward: fc.constantFrom(0, 1, 0.1, -1),
  version: fc.constantFrom('7', '8', 'step-9', null),
})

/** Selections of up to four rollouts in groups of two, as a trainer with these needs takes them. */
export function arbitrarySelection(needs: TrainerNeeds = noNeeds): fc.Arbitrary<GeneratedSelection> {
  return fc
    .record({ seeds: fc.array(rolloutSeed, { maxLength: 4 }), filtered: fc.nat(50) })
    .map(({ seeds, filtered }) => generatedSelection(fitting(seeds, needs), filtered))
}

/** A selection that misses one need and holds all others. */
export function selectionMissing(need: keyof TrainerNeeds): GeneratedSelection {
  const [answer] = uniformSeed(0, 5).turns[0]?.answers ?? []
  const seeds = Array.from({ length: need === 'equalGroups' ? 3 : 4 }, (_, index): RolloutSeed => {
    const seed = uniformSeed(need === 'groupsByPrompt' ? index : Math.floor(index / 2), 5)
    const isSplit = need === 'oneRowPerRollout' || need === 'contiguousPrefix'
    if (!isSplit || answer === undefined) return { ...seed, gaps: need === 'logprobOnEachToken' }
    return { ...seed, turns: seed.turns.map((one) => ({ ...one, answers: [answer, answer] })) }
  })
  return generatedSelection(seeds, 0)
}

function fitting(seeds: readonly RolloutSeed[], needs: TrainerNeeds): readonly RolloutSeed[] {
  const whole = needs.equalGroups ? seeds.slice(0, seeds.length - (seeds.length % 2)) : seeds
  return whole.map((seed, index) => ({
    ...seed,
    gaps: seed.gaps && !needs.logprobOnEachToken,
    turns: seed.turns.map((one, at) => ({
      ...one,
      prompt: needs.groupsByPrompt && at === 0 ? [Math.floor(index / 2)] : one.prompt,
      answers: needs.oneRowPerRollout || needs.contiguousPrefix ? one.answers.slice(0, 1) : one.answers,
    })),
  }))
}

/** `count` rollouts of one shape: for tests of size rather than of shape. */
export function uniformSelection(count: number, tokensPerTurn: number): GeneratedSelection {
  return generatedSelection(
    Array.from({ length: count }, (_, index) => uniformSeed(Math.floor(index / 2), tokensPerTurn)),
    0,
  )
}

/** The prompt begins with the ordinal of the group. */
function uniformSeed(group: number, tokensPerTurn: number): RolloutSeed {
  const ids = Array.from({ length: tokensPerTurn }, (_, i) => (i * 7919) % 150_000)
  const logprobs = ids.map((id) => -id / 1e5)
  return {
    turns: [{ prompt: [group, ...ids.slice(1)], answers: [{ ids, logprobs }], text: 'same' }],
    mainClass: true,
    gaps: false,
    reward: 1,
    version: '1',
  }
}

function generatedSelection(seeds: readonly RolloutSeed[], filtered: number): GeneratedSelection {
  const newId = idMaker({ now: () => 1_700_000_000_000, monotonic: () => 0 }, (bytes) => bytes.fill(7))
  const counts = { trainable: 0, masked: {} as Partial<Record<MaskReason, number>> }
  const groups = [newId()]
  const rollouts = seeds.map((seed, index) => {
    if (index % 2 === 0) groups.push(newId())
    return rolloutOf(seed, { newId, groupId: groups.at(-1) ?? '', slot: index % 2, counts })
  })
  const masked = Object.values(counts.masked).reduce((a, b) => a + b, 0)
  const accounting: TokenAccounting = {
    sampled: counts.trainable + masked + filtered,
    trainable: counts.trainable,
    masked: counts.masked,
    notExported: filtered === 0 ? {} : { filtered },
    byAnswerLength: lengthsOf(rollouts),
  }
  return {
    rollouts,
    accounting,
    fingerprint: generatedFingerprint,
    open: () => selectionOf(rollouts, accounting),
  }
}

/** Each answer by its length: no row here holds a part of one. */
function lengthsOf(rollouts: readonly ExportRollout[]): TokenAccounting['byAnswerLength'] {
  const answers = new Map<string, { readonly length: number; trainable: number }>()
  for (const row of rollouts.flatMap(({ rows }) => rows)) {
    for (const { segmentId, origin, start, end } of row.segments) {
      if (origin !== 'sampled') continue
      const trained = row.mask.subarray(start, end).reduce((sum, bit) => sum + bit, 0)
      const known = answers.get(segmentId) ?? { length: end - start, trainable: 0 }
      answers.set(segmentId, { ...known, trainable: known.trainable + trained })
    }
  }
  const found = new Map<number, { from: number; to: number; answers: number; sampled: number; trainable: number }>()
  for (const { length, trainable } of answers.values()) {
    if (length === 0) continue
    let from = 1
    while (2 * from <= length) from *= 2
    const before = found.get(from) ?? { from, to: 2 * from - 1, answers: 0, sampled: 0, trainable: 0 }
    const sampled = before.sampled + length
    found.set(from, { ...before, answers: before.answers + 1, sampled, trainable: before.trainable + trainable })
  }
  return [...found.values()].toSorted((a, b) => a.from - b.from)
}

/** A {@link Selection} over rollouts in memory. */
export function selectionOf(rollouts: Iterable<ExportRollout>, accounting: TokenAccounting): Selection {
  let seen = 0
  let ended = false
  const counted: CountedAttempt[] = []
  return {
    // A real selection waits for its store between rollouts, hence async.
    async *[Symbol.asyncIterator]() {
      for (const rollout of rollouts) {
        seen += 1
        counted.push(countedAttempt(rollout.rollout, rollout.taskName))
        yield await Promise.resolve(rollout)
      }
      ended = true
    },
    summary(): SelectionSummary {
      if (!ended) throw new PaddockError('EXPORT_REFUSED', 'The selection has not ended')
      return {
        accounting,
        rollouts: { selected: seen, exported: seen, dropped: [] },
        groups: { selected: seen, exported: seen, dropped: [] },
        nulls: nullShareOf(counted),
        rowsLeftOut: {},
        drift: { calls: seen, forks: {}, shouldExtend: 0, extended: 0, exact: seen },
      }
    },
  }
}

interface Making {
  readonly newId: () => string
  readonly groupId: string
  readonly slot: number
  readonly counts: { trainable: number; readonly masked: Partial<Record<MaskReason, number>> }
}

function rolloutOf(seed: RolloutSeed, making: Making): ExportRollout {
  const { newId, groupId } = making
  const rolloutId = newId()
  const taskDigest = sha256('task')
  const rows = rowsOf(seed, making, { rolloutId, taskDigest })
  return {
    rollout: {
      id: rolloutId,
      runId: sha256('run'),
      groupId,
      slot: making.slot,
      attempt: 0,
      harness: 'script',
      createdAt: 1,
      taskDigest,
      work: null,
      startedAt: 2,
      endedAt: 3,
      end: 'completed',
      endDetail: '',
      taints: [],
      verdicts: [],
      labels: {},
    },
    group: { id: groupId, runId: sha256('run'), taskDigest, promptVariant: 'default', createdAt: 1 },
    taskName: 'generated',
    environment: 'terminal',
    instruction: 'Do “it”.\nThen stop.',
    verdict: {
      id: newId(),
      rolloutId,
      at: 4,
      status: 'scored',
      reward: seed.reward,
      components: { json: seed.reward },
      steps: rows.flatMap(({ row }) =>
        row.segments.flatMap(({ callId, origin }) =>
          callId === null || origin !== 'sampled' ? [] : [{ callId, value: seed.reward }],
        ),
      ),
      evidence: '',
      artifacts: [],
      verifier: { id: 'generated', version: '1', sha256: sha256('verifier') },
      trust: 'separate',
      by: 'verifier',
      costTokens: 0,
      supersedes: null,
    },
    rows: rows.map(({ row }) => row),
    advantage: seed.reward - 0.25,
    rowWeights: rows.map(() => 1 / rows.length),
    conversations: rows.map(({ messages }) => ({ messages, tools: '[{"type":"function"}]', media: [] })),
  }
}

interface Path {
  readonly tokens: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
  readonly segments: readonly RowSegment[]
  readonly messages: readonly string[]
}

function rowsOf(
  seed: RolloutSeed,
  making: Making,
  facts: { rolloutId: string; taskDigest: string },
): readonly { row: Row; messages: readonly string[] }[] {
  const { newId, counts } = making
  const callClass = seed.mainClass ? 'main' : 'title'
  let trunk: Path = { tokens: [], mask: [], logprobs: [], segments: [], messages: [] }
  const leaves: Path[] = []
  for (const turnSeed of seed.turns) {
    const prompted = grow(trunk, {
      ids: turnSeed.prompt,
      origin: 'prompt',
      segmentId: newId(),
      callId: null,
      callClass,
      message: JSON.stringify({ role: 'user', content: turnSeed.text }),
    })
    const callId = newId()
    for (const [choice, sampled] of turnSeed.answers.entries()) {
      const grown = grow(prompted, {
        ids: sampled.ids,
        logprobs: sampled.logprobs,
        origin: 'sampled',
        segmentId: newId(),
        callId,
        callClass,
        choice,
        gaps: seed.gaps,
        message: `{"role": "assistant", "content": ${JSON.stringify(turnSeed.text)}, "n": 1.0}`,
      })
      const isLast = choice === turnSeed.answers.length - 1
      if (isLast) trunk = grown
      else leaves.push(grown)
      for (const value of grown.mask.slice(prompted.tokens.length)) {
        if (value === 1) counts.trainable += 1
        else {
          const reason: MaskReason = seed.mainClass ? 'missing_logprob' : 'class'
          counts.masked[reason] = (counts.masked[reason] ?? 0) + 1
        }
      }
    }
  }
  // The trunk owns what siblings share with it, as the earliest complete path.
  return [{ path: trunk, owner: true }, ...leaves.map((path) => ({ path, owner: false }))].map(({ path, owner }) => ({
    row: rowOf(owner ? path : disown(path), seed, facts, newId),
    messages: path.messages,
  }))
}

interface Piece {
  readonly ids: readonly number[]
  readonly logprobs?: readonly number[]
  readonly origin: 'prompt' | 'sampled'
  readonly segmentId: string
  readonly callId: string | null
  readonly callClass: 'main' | 'title'
  readonly choice?: number
  readonly gaps?: boolean
  readonly message: string
}

function grow(path: Path, piece: Piece): Path {
  const isSampled = piece.origin === 'sampled'
  const isTrained = isSampled && piece.callClass === 'main'
  // Every third token of a gappy answer came without logprob.
  const mask = piece.ids.map((_, i) => (isTrained && !(piece.gaps === true && i % 3 === 2) ? 1 : 0))
  const start = path.tokens.length
  return {
    tokens: [...path.tokens, ...piece.ids],
    mask: [...path.mask, ...mask],
    logprobs: [...path.logprobs, ...mask.map((value, i) => (value === 1 ? (piece.logprobs?.[i] ?? 0) : 0))],
    segments: [
      ...path.segments,
      {
        segmentId: piece.segmentId,
        origin: piece.origin,
        callId: piece.callId,
        callClass: piece.callClass,
        choice: piece.choice ?? null,
        start,
        end: start + piece.ids.length,
        trained: isTrained,
        maskReason: isSampled && !isTrained ? 'class' : null,
      },
    ],
    messages: [...path.messages, piece.message],
  }
}

/** A sibling's row: only its own last answer is trained in it. */
function disown(path: Path): Path {
  const leaf = path.segments.at(-1)
  const from = leaf?.start ?? 0
  return {
    ...path,
    mask: path.mask.map((value, i) => (i < from ? 0 : value)),
    logprobs: path.logprobs.map((value, i) => (i < from ? 0 : value)),
    segments: path.segments.map((segment) =>
      segment === leaf || !segment.trained ? segment : { ...segment, trained: false, maskReason: 'owned_elsewhere' },
    ),
  }
}

const sampling: SamplingParams = {
  temperature: 1,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
  maxTokens: 64,
  seed: null,
  stop: [],
  n: 1,
  other: [],
}

function rowOf(
  path: Path,
  seed: RolloutSeed,
  facts: { rolloutId: string; taskDigest: string },
  newId: () => string,
): Row {
  const sampled = path.segments.filter((segment) => segment.origin === 'sampled')
  const kind: LogprobKind = 'raw'
  return {
    id: `${facts.rolloutId}:${path.segments.at(-1)?.segmentId ?? ''}`,
    rolloutId: facts.rolloutId,
    sessionId: newId(),
    groupId: facts.rolloutId,
    taskDigest: facts.taskDigest,
    leafCallId: sampled.at(-1)?.callId ?? null,
    tokens: Int32Array.from(path.tokens),
    mask: Uint8Array.from(path.mask),
    logprobs: Float32Array.from(path.logprobs),
    logprobKind: kind,
    promptLength: sampled[0]?.start ?? path.tokens.length,
    segments: path.segments,
    injected: [],
    offContext: false,
    policySpans: sampled.map((segment) => ({
      start: segment.start,
      end: segment.end,
      policy: { model: 'generated', adapter: null, weightVersion: seed.version },
      mixing: 'none',
    })),
    sampling: sampled.flatMap(({ callId }) => (callId === null ? [] : [{ callId, params: sampling }])),
    finishReason: 'stop',
    fingerprint: sha256(JSON.stringify(generatedFingerprint)),
  }
}
