import { type Digest, type Id, newId, type PolicySpan } from '../../core/index.ts'
import type { DriftCause, Fork, Segment, Span } from '../../trajectory/index.ts'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'
import { turnDigest } from '../dialects/chat/turns.ts'
import type { ContinuedAnswer } from '../session/conversation.ts'
import type { AnsweredCall, CallTokens, PastCall } from './contract.ts'
import { answerFacts, type AnswerFacts, driftCause, hasClearedResults, pastAnswerFacts } from './drift.ts'
import type { VersionSpan } from '../engines/token-engine.ts'
import { alignedLogprobs, findingsOf, producedSomething } from './integrity.ts'
import { agree, mediaDigests } from './media.ts'
import { PathTree, type PromptPlace } from './path-tree.ts'
import { stopCutOf } from './stop-cut.ts'

/** How many ids around a difference go into the drift ledger. */
const ledgerWindow = 16

/** An answer as the tree holds it. */
export interface KnownAnswer {
  /** What a later prompt can extend: without the tail behind a stop string. */
  readonly segment: Segment
  readonly facts: AnswerFacts
  /** Number of messages before it in the conversation. */
  readonly index: number
  /** Ids stand for all of the visible text and nothing else. */
  readonly exact: boolean
}

/** What the strategy knows beyond the answer. */
export interface CallNotes {
  /** Why the prompt was not made to extend what it should have, where the strategy decided that itself. */
  readonly forked: DriftCause | null
  readonly findings: readonly string[]
  /** By choice: which weights sampled which tokens. */
  readonly weightVersions: ReadonlyMap<number, readonly VersionSpan[]>
}

const noNotes: CallNotes = { forked: null, findings: [], weightVersions: new Map() }

/**
 * The token tree of a session as its calls come in: prompts share what they have in common with earlier paths, sampled
 * ids are hung as they were sampled, and a prompt that should have extended an answer and did not is a fork with a cause.
 */
export class RecordedTree {
  private readonly tree = new PathTree()
  private readonly answers = new Map<string, KnownAnswer>()
  private readonly bySegment = new Map<Id, KnownAnswer>()
  private readonly byTurn = new Map<string, KnownAnswer>()
  /** Media of the prompts that brought segments, where there were any. */
  private readonly media = new Map<Id, readonly Digest[]>()
  private readonly sessionId: Id

  constructor(sessionId: Id) {
    this.sessionId = sessionId
  }

  /** The answers that a conversation continues, as far as they have ids. */
  known(answers: readonly ContinuedAnswer[]): readonly KnownAnswer[] {
    return answers.flatMap(({ callId, choice }) => this.answers.get(`${callId}/${choice}`) ?? [])
  }

  /** All ids up to the end of an answer's visible part. */
  pathOf(answer: KnownAnswer): Int32Array {
    return this.tree.pathIds(answer.segment)
  }

  /** The answers that an answer's path runs through, oldest first, itself last. */
  answersBefore(answer: KnownAnswer): readonly KnownAnswer[] {
    return this.tree.ancestors(answer.segment).flatMap((segment) => this.bySegment.get(segment.id) ?? [])
  }

  add(call: AnsweredCall, notes: CallNotes = noNotes): CallTokens {
    const { answer } = call
    const segments: Segment[] = []
    const spans: Span[] = []
    const forks: Fork[] = []
    const choiceSegments = new Map<number, Id>()
    const ids = answer.promptIds
    const media = mediaDigests(call.messages)
    let parent: Segment['parent'] = null
    if (ids !== null && ids.length > 0) {
      const expected = this.expected(call)
      const fits = (segment: Segment) => agree(this.media.get(segment.id) ?? [], media)
      const place = this.tree.place(ids, new Set(expected.map((segment) => segment.id)), fits)
      const otherMedia = expected.some((segment) => !fits(segment))
      const fork = this.forkOf(call, ids, place, { expected, cause: otherMedia ? 'multimodal' : notes.forked })
      if (fork !== null) forks.push(fork)
      else forks.push(...this.leftBehind(call, ids, place))
      if (place.at !== null) parent = { segmentId: place.at.segment.id, offset: place.at.offset }
      if (place.matched < ids.length) {
        const fresh = this.segment(call, 'prompt', ids.slice(place.matched), parent)
        segments.push(fresh)
        spans.push(promptSpan(call, fresh, place))
        parent = { segmentId: fresh.id, offset: fresh.tokens.length }
      }
    }
    // Without prompt ids nobody can say what the sampled ids stood behind; they start a path of their own.
    const promptLeaf = parent?.segmentId ?? null
    for (const choice of answer.choices) {
      // An empty generation is a segment without tokens; one whose ids the engine left out is none.
      if (choice.tokenIds.length === 0 && (parent === null || producedSomething(choice))) continue
      const whole = this.sampled(call, choice, {
        parent,
        versions: notes.weightVersions.get(choice.index) ?? choice.weightVersions,
      })
      const cut = stopCutOf(choice)
      const sampled = cut === null ? whole : partOf(whole, 0, cut.visible)
      segments.push(sampled)
      if (cut !== null && cut.visible < whole.tokens.length) {
        segments.push({
          ...partOf(whole, cut.visible, whole.tokens.length),
          id: newId(),
          parent: { segmentId: sampled.id, offset: cut.visible },
          stopCut: true,
        })
      }
      choiceSegments.set(choice.index, sampled.id)
      this.remember(call, choice, { segment: sampled, exact: cut?.exact ?? true })
      if (sampled.tokens.length > 0) {
        spans.push({
          segmentId: sampled.id,
          start: 0,
          end: sampled.tokens.length,
          role: 'assistant',
          part: 'content',
          sourceCallId: call.callId,
        })
      }
    }
    for (const segment of segments) {
      this.tree.add(segment)
      if (media.length > 0) this.media.set(segment.id, media)
    }
    return { segments, spans, promptLeaf, forks, choiceSegments, findings: merged(findingsOf(call), notes.findings) }
  }

  /**
   * Hangs what an earlier process stored. Token texts are not stored: of an answer that a stop string cut nobody can tell
   * whether its ids stand for all of the visible text, and the causes of forks are told by the messages alone.
   */
  takeUp({ callId, segments, choices, messages }: PastCall): void {
    const media = mediaDigests(messages)
    for (const segment of segments) {
      this.tree.add(segment)
      if (media.length > 0) this.media.set(segment.id, media)
    }
    for (const { index, segmentId, message, finishReason } of choices) {
      const segment = segments.find(({ id }) => id === segmentId)
      if (segment === undefined) continue
      const stoppedByString = segments.some(({ stopCut, parent }) => stopCut && parent?.segmentId === segment.id)
      const facts = pastAnswerFacts(JSON.parse(message), { finishReason, stoppedByString })
      this.keep(`${callId}/${index}`, { segment, exact: !stoppedByString, facts, index: messages.length })
    }
  }

  private remember(call: AnsweredCall, choice: ChoiceAnswer, held: Pick<KnownAnswer, 'segment' | 'exact'>): void {
    const known = { ...held, facts: answerFacts(choice), index: call.messages.length }
    this.keep(`${call.callId}/${choice.index}`, known)
  }

  private keep(name: string, known: KnownAnswer): void {
    this.answers.set(name, known)
    this.bySegment.set(known.segment.id, known)
    this.byTurn.set(known.facts.turn, known)
  }

  /** The sampled segments that the conversation says the prompt continues. */
  private expected(call: AnsweredCall): Segment[] {
    return this.known(call.match.continues).flatMap(({ segment }) => (segment.tokens.length === 0 ? [] : [segment]))
  }

  /** The ledger entry where a prompt should have extended an earlier answer and did not; null where all is well. */
  private forkOf(
    call: AnsweredCall,
    ids: Int32Array,
    place: PromptPlace,
    { expected, cause }: { readonly expected: readonly Segment[]; readonly cause: DriftCause | null },
  ): Fork | null {
    const [segment, second] = expected
    if (segment === undefined || expected.some((one) => place.through.includes(one))) return null
    const path = this.tree.pathIds(segment)
    const position = commonLength(path, ids)
    // A template may change an answer long before the one that is continued; the cause is in the one that changed.
    const changed = this.tree.sampledAt(segment, position)
    const known = changed === null ? undefined : this.bySegment.get(changed.segment.id)
    const told = driftCause({
      answer: known?.facts ?? null,
      at: changed === null ? 0 : position - changed.start,
      echoed: known === undefined ? undefined : call.messages[known.index],
      edited: call.match.edited,
      cleared: this.bySegment.get(segment.id)?.index === call.match.at && hasClearedResults(call.messages),
      ambiguous: place.ambiguous && second !== undefined,
      shorter: ids.length < path.length,
    })
    return this.entry(segment, ids, cause ?? told)
  }

  /** The newest answer behind the continued one that came back on other grounds: something before it was edited. */
  private leftBehind(call: AnsweredCall, ids: Int32Array, place: PromptPlace): Fork[] {
    if (call.match.at < 0 || call.match.edited) return []
    for (let index = call.messages.length - 1; index > call.match.at; index -= 1) {
      const message = call.messages[index]
      if (typeof message !== 'object' || message === null || Reflect.get(message, 'role') !== 'assistant') continue
      const known = this.byTurn.get(turnDigest(message))
      const segment = known?.segment
      if (segment === undefined || segment.tokens.length === 0 || place.through.includes(segment)) continue
      if (known?.index === index && hasClearedResults(call.messages)) return [this.entry(segment, ids, 'context_edit')]
      const shorter = ids.length < this.tree.pathIds(segment).length
      return [this.entry(segment, ids, shorter ? 'compaction' : 'harness_rewrite')]
    }
    return []
  }

  private entry(segment: Segment, ids: Int32Array, cause: DriftCause): Fork {
    const path = this.tree.pathIds(segment)
    const position = commonLength(path, ids)
    const from = Math.max(0, position - ledgerWindow / 2)
    return {
      cause,
      fromCallId: segment.callId,
      position,
      expected: Array.from(path.subarray(from, from + ledgerWindow)),
      got: Array.from(ids.subarray(from, from + ledgerWindow)),
      tokensAffected: this.tree.sampledBehind(segment, position),
    }
  }

  private sampled(
    call: AnsweredCall,
    choice: ChoiceAnswer,
    {
      parent,
      versions,
    }: {
      readonly parent: Segment['parent']
      readonly versions: readonly VersionSpan[]
    },
  ): Segment {
    const { answer } = call
    const tokens = new Int32Array(choice.tokenIds)
    const policy = {
      model: answer.model ?? call.model ?? 'unknown',
      adapter: null,
      weightVersion: answer.weightVersionLast,
    }
    const atStart = answer.staleCache ? 'kv_mixed' : 'none'
    const mixing = answer.weightVersionFirst === answer.weightVersionLast ? atStart : 'mixed'
    const policySpans = coversAll(versions, tokens.length)
      ? versions.map(({ version, start, end, mixing: known }, index): PolicySpan => ({
          start,
          end,
          policy: { ...policy, weightVersion: version },
          // What runs through an update goes on with the keys and values of the old weights, unless they were dropped.
          mixing: known ?? (index > 0 && !answer.recomputed ? 'kv_mixed' : atStart),
        }))
      : tokens.length === 0
        ? []
        : [{ start: 0, end: tokens.length, policy, mixing } as const]
    return {
      ...this.segment(call, 'sampled', tokens, parent),
      choice: choice.index,
      ...alignedLogprobs(choice),
      logprobKind: call.logprobKind,
      policySpans,
    }
  }

  private segment(
    call: AnsweredCall,
    origin: Segment['origin'],
    tokens: Int32Array,
    parent: Segment['parent'],
  ): Segment {
    return {
      id: newId(),
      sessionId: this.sessionId,
      callId: call.callId,
      choice: null,
      parent,
      origin,
      tokens,
      logprobs: null,
      flags: null,
      logprobKind: 'unknown',
      policySpans: [],
      replayOf: null,
      stopCut: false,
    }
  }
}

/** Spans as an engine tells them, one behind the other over all tokens. */
function coversAll(spans: readonly { readonly start: number; readonly end: number }[], length: number): boolean {
  let at = 0
  for (const { start, end } of spans) {
    if (start !== at || end <= start) return false
    at = end
  }
  return spans.length > 0 && at === length
}

/** Tokens `[start, end)` of a sampled segment with everything that belongs to them. */
function partOf(whole: Segment, start: number, end: number): Segment {
  const { logprobs, flags, policySpans } = whole
  return {
    ...whole,
    tokens: whole.tokens.slice(start, end),
    logprobs: logprobs?.slice(start, end) ?? null,
    flags: flags?.slice(start, end) ?? null,
    policySpans: policySpans.flatMap((span) => {
      const cut = { ...span, start: Math.max(span.start, start) - start, end: Math.min(span.end, end) - start }
      return cut.start < cut.end ? [cut] : []
    }),
  }
}

function merged(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])].sort()
}

function commonLength(one: Int32Array, other: Int32Array): number {
  let length = 0
  while (length < one.length && length < other.length && one[length] === other[length]) length += 1
  return length
}

const spanRoles = ['system', 'developer', 'user', 'assistant', 'tool'] as const

/**
 * Whose the new prompt tokens are: the role of the new messages where all have one, else unknown. Which of them are
 * content and which the template's scaffold only a tokenizer could tell, so that is unknown.
 */
function promptSpan(call: AnsweredCall, segment: Segment, place: PromptPlace): Span {
  const extended = place.through.length > 0 && !call.match.edited
  const fresh = extended ? call.messages.slice(call.match.at + 1) : call.messages
  const roles = new Set(
    fresh.map((message) =>
      typeof message === 'object' && message !== null && 'role' in message ? message.role : null,
    ),
  )
  const [only, second] = [...roles]
  const role = second === undefined ? spanRoles.find((name) => name === only) : undefined
  return {
    segmentId: segment.id,
    start: 0,
    end: segment.tokens.length,
    role: role ?? 'unknown',
    part: 'unknown',
    sourceCallId: call.callId,
  }
}
