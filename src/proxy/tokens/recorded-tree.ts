import { type Digest, type Id, newId, type PolicySpan } from '../../core/index.ts'
import { type DriftCause, type Fork, type Segment, type Span, wireFaultOf } from '../../trajectory/index.ts'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'
import { turnDigest } from '../dialects/chat/turns.ts'
import type { ContinuedAnswer } from '../session/conversation.ts'
import type { AnsweredCall, CallTokens, PastCall } from './contract.ts'
import { answerFacts, type AnswerFacts, driftCause, hasClearedResults, pastAnswerFacts } from './drift.ts'
import type { VersionSpan } from '../engines/token-engine.ts'
import { versionUnder } from '../upstream.ts'
import { alignedLogprobs, findingsOf, producedSomething } from './integrity.ts'
import { KeptIds } from './kept-ids.ts'
import { agree, mediaDigests } from './media.ts'
import { type PathNode, PathTree, type Place, type PromptPlace } from './path-tree.ts'
import { stopCutOf } from './stop-cut.ts'

/** How many answers are looked at one by one before an index is made of all. */
const newestFew = 16

/** How many ids around a difference go into the drift report. */
const driftWindow = 16

/** An answer as the tree holds it. */
export interface KnownAnswer {
  /** What a later prompt can extend: without the tail behind a stop string. */
  readonly node: Node
  readonly facts: AnswerFacts
  /** Which choice of its call it is. */
  readonly choice: number
  /** Number of messages before it in the conversation. */
  readonly index: number
  /** How many of them are not the system's. */
  readonly spoken: number
  /** Ids stand for all of the visible text and nothing else. */
  readonly exact: boolean
  /** The answer of the session that came before: an earlier choice of the same call, or of an earlier one. */
  readonly before: KnownAnswer | null
}

/** A segment as the tree holds it; sampled ones with their answer. */
type Node = PathNode<KnownAnswer>

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
  private readonly tree = new PathTree<KnownAnswer>()
  private readonly ids = new KeptIds()
  private newest: KnownAnswer | null = null
  /** The last choice of each call, of all up to `indexed`; made for who asks for answers that are not among the newest. */
  private readonly answers = new Map<Id, KnownAnswer>()
  private indexed: KnownAnswer | null = null
  /** Media of the prompts that brought segments, where there were any. */
  private readonly media = new Map<Node, readonly Digest[]>()
  private readonly sessionId: Id

  constructor(sessionId: Id) {
    this.sessionId = sessionId
  }

  /** The answers that a conversation continues, as far as they have ids. */
  known(answers: readonly ContinuedAnswer[]): readonly KnownAnswer[] {
    const found: KnownAnswer[] = []
    for (const one of answers) {
      const answer = this.find(one)
      if (answer !== null) found.push(answer)
    }
    return found
  }

  private find({ callId, choice }: ContinuedAnswer): KnownAnswer | null {
    let answer = this.newest
    for (let looked = 0; answer !== null && looked < newestFew; looked += 1, answer = answer.before) {
      if (answer.choice === choice && answer.node.callId === callId) return answer
    }
    if (answer === null) return null
    this.index()
    answer = this.answers.get(callId) ?? null
    while (answer !== null && answer.choice !== choice) answer = answer.before
    return answer?.node.callId === callId ? answer : null
  }

  /** What a conversation continues is mostly among the newest: an index of all costs every call, and few sessions ask it. */
  private index(): void {
    for (let answer = this.newest; answer !== this.indexed && answer !== null; answer = answer.before) {
      const { callId } = answer.node
      if (callId !== null && !this.answers.has(callId)) this.answers.set(callId, answer)
    }
    this.indexed = this.newest
  }

  /** All ids up to the end of an answer's visible part. */
  pathOf(answer: KnownAnswer): Int32Array {
    return this.tree.pathIds(answer.node)
  }

  /**
   * The answers that an answer's path runs through to their end, oldest first, itself last. One that the path leaves
   * before its end was rewritten: what the path shares with it is prompt.
   */
  answersBefore(answer: KnownAnswer): readonly KnownAnswer[] {
    const path = this.tree.ancestors(answer.node)
    return path.flatMap(({ note, tokens }, at) => {
      const next = path[at + 1]
      return note === null || (next !== undefined && next.offset < tokens.length) ? [] : note
    })
  }

  add(call: AnsweredCall, notes: CallNotes = noNotes): CallTokens {
    const { answer } = call
    const segments: Segment[] = []
    const spans: Span[] = []
    const media = mediaDigests(call.messages)
    const findings = merged(findingsOf(call), notes.findings)
    // Nothing is built on an answer that broke the rules of the wire: a later prompt extends it where its own ids do.
    const holds = wireFaultOf(findings) === null
    const { at, forks } = findings.includes('invalid_prompt_ids')
      ? nowhere
      : this.hangPrompt(call, { media, notes }, { segments, spans })
    for (const choice of answer.choices) {
      // An empty generation is a segment without tokens; one whose ids the engine left out is none.
      if (choice.tokenIds.length === 0 && (at === null || producedSomething(choice))) continue
      const whole = this.sampled(call, choice, {
        parent: parentAt(at),
        versions: notes.weightVersions.get(choice.index) ?? choice.weightVersions,
      })
      const cut = stopCutOf(choice, call.stops)
      const sampled = cut === null ? whole : partOf(whole, 0, cut.visible)
      segments.push(sampled)
      const node = this.hang(sampled, at, media)
      if (cut !== null && cut.visible < whole.tokens.length) {
        const tail: Segment = {
          ...partOf(whole, cut.visible, whole.tokens.length),
          id: newId(),
          parent: { segmentId: sampled.id, offset: cut.visible },
          stopCut: true,
        }
        segments.push(tail)
        this.hang(tail, { node, offset: cut.visible }, media)
      }
      if (holds) this.remember(call, choice, { node, exact: cut?.exact ?? true })
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
    const promptLeaf = at?.node.id ?? null
    return { segments, spans, promptLeaf, forks, findings }
  }

  /**
   * Hangs what is new of a prompt and says where it ends, with the forks that it shows. Without prompt ids nobody can say
   * what the sampled ids stood behind; they start a path of their own.
   */
  private hangPrompt(
    call: AnsweredCall,
    { media, notes }: { readonly media: readonly Digest[]; readonly notes: CallNotes },
    stored: { readonly segments: Segment[]; readonly spans: Span[] },
  ): { readonly at: Place<KnownAnswer>; readonly forks: readonly Fork[] } {
    const ids = call.answer.promptIds
    if (ids === null || ids.length === 0) return { at: null, forks: noForks }
    const expected = this.expected(call)
    // Prompts without media fit with everything.
    const fits = this.media.size === 0 ? null : (node: Node) => agree(this.media.get(node) ?? [], media)
    const place = this.tree.place(ids, expected, fits)
    const otherMedia = fits !== null && expected.some((node) => !fits(node))
    const fork = this.forkOf(call, ids, place, {
      expected,
      cause: otherMedia ? 'multimodal' : (call.forked ?? notes.forked),
    })
    const forks = fork === null ? this.leftBehind(call, ids, place) : [fork]
    if (place.matched === ids.length) return { at: place.at, forks }
    const tokens = this.ids.keep(ids, place.matched)
    const fresh = this.promptSegment(call, tokens, parentAt(place.at))
    stored.segments.push(fresh)
    stored.spans.push(promptSpan(call, fresh, place))
    return { at: { node: this.hang(fresh, place.at, media), offset: tokens.length }, forks }
  }

  /**
   * Hangs what an earlier process stored. Token texts are not stored: of an answer that a stop string cut nobody can tell
   * whether its ids stand for all of the visible text, and the causes of forks are told by the messages alone.
   */
  takeUp({ segments, choices, messages, findings }: PastCall): void {
    const media = mediaDigests(messages)
    const nodes = segments.map((segment) => {
      const node = this.tree.takeUp(segment)
      if (media.length > 0) this.media.set(node, media)
      return node
    })
    if (wireFaultOf(findings) !== null) return
    for (const { index, segmentId, message, finishReason } of choices) {
      const node = nodes.find(({ id }) => id === segmentId)
      if (node === undefined) continue
      const stoppedByString = segments.some(({ stopCut, parent }) => stopCut && parent?.segmentId === node.id)
      const facts = pastAnswerFacts(JSON.parse(message), { finishReason, stoppedByString })
      this.keep({
        node,
        exact: !stoppedByString,
        facts,
        choice: index,
        index: messages.length,
        spoken: spokenIn(messages),
      })
    }
  }

  private hang(segment: Segment, at: Place<KnownAnswer>, media: readonly Digest[]): Node {
    const node = this.tree.add(segment, at)
    if (media.length > 0) this.media.set(node, media)
    return node
  }

  private remember(
    call: AnsweredCall,
    choice: ChoiceAnswer,
    { node, exact }: Pick<KnownAnswer, 'node' | 'exact'>,
  ): void {
    this.keep({
      node,
      exact,
      facts: answerFacts(choice),
      choice: choice.index,
      index: call.messages.length,
      spoken: spokenIn(call.messages),
    })
  }

  private keep({ node, exact, facts, choice, index, spoken }: Omit<KnownAnswer, 'before'>): void {
    const known = { node, exact, facts, choice, index, spoken, before: this.newest }
    this.newest = known
    node.note = known
  }

  /** The sampled segments that the conversation says the prompt continues. */
  private expected(call: AnsweredCall): readonly Node[] {
    const { continues } = call.match
    if (continues.length === 0) return noNodes
    const nodes: Node[] = []
    for (const { node } of this.known(continues)) if (node.tokens.length > 0) nodes.push(node)
    return nodes
  }

  /** the entry of the drift report where a prompt should have extended an earlier answer and did not; null where all is well. */
  private forkOf(
    call: AnsweredCall,
    ids: Int32Array,
    place: PromptPlace<KnownAnswer>,
    { expected, cause }: { readonly expected: readonly Node[]; readonly cause: DriftCause | null },
  ): Fork | null {
    const [node, second] = expected
    if (node === undefined || expected.some((one) => place.through.includes(one))) return null
    const path = this.tree.pathIds(node)
    const position = commonLength(path, ids)
    // A template may change an answer long before the one that is continued; the cause is in the one that changed.
    const changed = this.tree.sampledAt(node, position)
    const known = changed?.node.note ?? null
    const told = driftCause({
      answer: known?.facts ?? null,
      tokens: changed?.node.tokens ?? noTokens,
      at: changed === null ? 0 : position - changed.start,
      echoed: known === null ? undefined : call.messages[known.index],
      edited: call.match.edited,
      cleared: node.note?.index === call.match.at && hasClearedResults(call.messages),
      ambiguous: place.ambiguous && second !== undefined,
      got: ids.subarray(position),
      dropped: node.note !== null && spokenIn(call.messages, call.match.at) < node.note.spoken,
      shorter: ids.length < path.length,
    })
    return this.entry(node, ids, cause ?? told)
  }

  /** The newest answer behind the continued one that came back on other grounds: something before it was edited. */
  private leftBehind(call: AnsweredCall, ids: Int32Array, place: PromptPlace<KnownAnswer>): readonly Fork[] {
    if (call.match.at < 0 || call.match.edited) return noForks
    for (let index = call.messages.length - 1; index > call.match.at; index -= 1) {
      const message = call.messages[index]
      if (typeof message !== 'object' || message === null || Reflect.get(message, 'role') !== 'assistant') continue
      const known = this.lastWithTurn(turnDigest(message)) ?? this.replacedAt(call, index)
      if (known === null || known.node.tokens.length === 0 || place.through.includes(known.node)) continue
      if (known.index === index && hasClearedResults(call.messages)) {
        return [this.entry(known.node, ids, 'context_edit')]
      }
      const dropped = spokenIn(call.messages, index) < known.spoken
      return [this.entry(known.node, ids, dropped ? 'compaction' : 'harness_rewrite')]
    }
    return noForks
  }

  /** The answer that stood where a message stands. */
  private replacedAt({ match }: AnsweredCall, index: number): KnownAnswer | null {
    return match.replaced?.at === index ? this.find(match.replaced.answer) : null
  }

  /** The newest answer of these words. Looked for one by one: it is seldom asked, and an index would stay for every answer. */
  private lastWithTurn(turn: string): KnownAnswer | null {
    let answer = this.newest
    while (answer !== null && answer.facts.turn !== turn) answer = answer.before
    return answer
  }

  private entry(node: Node, ids: Int32Array, cause: DriftCause): Fork {
    const path = this.tree.pathIds(node)
    const position = commonLength(path, ids)
    const from = Math.max(0, position - driftWindow / 2)
    return {
      cause,
      fromCallId: node.callId,
      position,
      expected: Array.from(path.subarray(from, from + driftWindow)),
      got: Array.from(ids.subarray(from, from + driftWindow)),
      tokensAffected: this.tree.sampledBehind(node, position),
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
    const tokens = this.ids.keep(choice.tokenIds)
    const policy = {
      model: answer.model ?? call.model ?? 'unknown',
      adapter: answer.adapter?.name ?? null,
      weightVersion: answer.weightVersionLast,
    }
    const atStart = answer.staleCache ? 'kv_mixed' : 'none'
    const mixing = answer.weightVersionFirst === answer.weightVersionLast ? atStart : 'mixed'
    const policySpans = coversAll(versions, tokens.length)
      ? versions.map(({ version, start, end, mixing: known, adapter }, index): PolicySpan => ({
          start,
          end,
          policy:
            adapter === undefined
              ? { ...policy, weightVersion: versionUnder(answer.adapter, version) }
              : { ...policy, adapter, weightVersion: version },
          // What runs through an update goes on with the keys and values of the old weights, unless they were dropped.
          mixing: known ?? (index > 0 && !answer.recomputed ? 'kv_mixed' : atStart),
        }))
      : tokens.length === 0
        ? []
        : [{ start: 0, end: tokens.length, policy, mixing } as const]
    const { logprobs, flags } = alignedLogprobs(choice, call.gives)
    return {
      id: newId(),
      sessionId: this.sessionId,
      callId: call.callId,
      choice: choice.index,
      parent,
      origin: 'sampled',
      tokens,
      logprobs,
      flags,
      logprobKind: call.logprobKind,
      policySpans,
      replayOf: null,
      stopCut: false,
    }
  }

  private promptSegment(call: AnsweredCall, tokens: Int32Array, parent: Segment['parent']): Segment {
    return {
      id: newId(),
      sessionId: this.sessionId,
      callId: call.callId,
      choice: null,
      parent,
      origin: 'prompt',
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

const noNodes: readonly Node[] = []
const noTokens = new Int32Array(0)
const noForks: readonly Fork[] = []
/** Of a prompt that nobody can know. */
const nowhere = { at: null, forks: noForks }

function parentAt(at: Place<KnownAnswer>): Segment['parent'] {
  return at === null ? null : { segmentId: at.node.id, offset: at.offset }
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
    tokens: whole.tokens.subarray(start, end),
    logprobs: logprobs?.slice(start, end) ?? null,
    flags: flags?.slice(start, end) ?? null,
    policySpans: policySpans.flatMap((span) => {
      const cut = { ...span, start: Math.max(span.start, start) - start, end: Math.min(span.end, end) - start }
      return cut.start < cut.end ? [cut] : []
    }),
  }
}

function merged(one: readonly string[], other: readonly string[]): readonly string[] {
  if (other.length === 0) return one
  return [...new Set([...one, ...other])].sort()
}

function commonLength(one: Int32Array, other: Int32Array): number {
  let length = 0
  while (length < one.length && length < other.length && one[length] === other[length]) length += 1
  return length
}

/** Messages before `end` that are not the system's: those a compaction makes fewer. */
function spokenIn(messages: readonly unknown[], end = messages.length): number {
  let count = 0
  for (let at = 0; at < end; at += 1) {
    const role = roleOf(messages[at])
    if (role !== 'system' && role !== 'developer') count += 1
  }
  return count
}

const spanRoles = ['system', 'developer', 'user', 'assistant', 'tool'] as const

/**
 * Whose the new prompt tokens are: the role of the new messages where all have one, else unknown. Which of them are
 * content and which the template's scaffold only a tokenizer could tell, so that is unknown.
 */
function promptSpan(call: AnsweredCall, segment: Segment, place: PromptPlace<KnownAnswer>): Span {
  const extended = place.through.length > 0 && !call.match.edited
  const role = commonRole(call.messages, extended ? call.match.at + 1 : 0)
  return {
    segmentId: segment.id,
    start: 0,
    end: segment.tokens.length,
    role: role ?? 'unknown',
    part: 'unknown',
    sourceCallId: call.callId,
  }
}

/** The role of all messages from a place on, where it is one that spans have; undefined: none, or several. */
function commonRole(messages: readonly unknown[], from: number): (typeof spanRoles)[number] | undefined {
  const role = roleOf(messages[from])
  for (let place = from + 1; place < messages.length; place += 1) if (roleOf(messages[place]) !== role) return undefined
  return spanRoles.find((name) => name === role)
}

function roleOf(message: unknown): unknown {
  return typeof message === 'object' && message !== null && 'role' in message ? message.role : null
}
