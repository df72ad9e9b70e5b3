import type { CallClass, Id, LogprobKind, PolicySpan, SamplingParams } from '../../core/index.ts'
import { withHindsight } from '../classify/index.ts'
import { type Segment, type SessionLog, tokenFlag, wireFaultOf } from '../contract/index.ts'
import type { DropReason, MaskReason, Row, RowSegment, RowView } from '../rows-contract.ts'
import { Forest, type PathStep } from './forest.ts'
import { InjectedParts, withoutInjected } from './injected.ts'
import { unseenTokens } from './unseen.ts'
import { candidates, defaultTrainClasses, ownBucket, unusable } from './usable.ts'

/** What rows need to know beyond the log. */
export interface RowOptions {
  readonly rolloutId: Id
  readonly groupId: Id
  readonly taskDigest: string
  /** Default `main` and `subagent`. */
  readonly trainClasses?: readonly CallClass[]
  /** Also rows whose leaf call has a class that is not trained. Default false. */
  readonly includeUntrainedRows?: boolean
  /** Answers whose weights changed while they were sampled are context only. Default false. */
  readonly maskMixedWeights?: boolean
  /** An answer with a token that lacks its logprob is context only. Default false. */
  readonly wholeAnswersOnly?: boolean
  /** The rollout was cut, and its group masks such rollouts: all its answers are context only. Default false. */
  readonly maskCut?: boolean
  /** Default `as_sampled`. */
  readonly view?: RowView
  /** `call`: a row for each call, which trains its own answer. Default `thread`: one for each path that nothing extends. */
  readonly rowPer?: 'thread' | 'call'
  /** Rows by id that are not made, and why; what they would have trained falls to the rows that hold it whole. */
  readonly leave?: ReadonlyMap<string, DropReason>
}

/** A session's rows, and every sampled token of the session that lies in none of them. */
export interface BuiltRows {
  readonly rows: readonly Row[]
  /** Rows of view `clean` that are not made: nobody knows their tokens. */
  readonly unclean: number
  /** Sampled tokens outside all rows, by reason. A tail behind a stop cut counts as masked, the others as not exported. */
  readonly outside: {
    readonly masked: Readonly<Partial<Record<MaskReason, number>>>
    readonly notExported: Readonly<Partial<Record<DropReason, number>>>
  }
}

/**
 * Walks a session's tree to rows. A row ends at each sampled segment that no other row's path runs through to its
 * end, so an append-only conversation is one row. Every trainable token is trained in one row only: the one of the
 * earliest leaf whose path holds its whole segment (invariant I3). Throws `STORE_CORRUPT`.
 */
export function buildRows(stored: SessionLog, options: RowOptions): BuiltRows {
  const log = withHindsight(stored)
  const forest = new Forest(log)
  const trainClasses = options.trainClasses ?? defaultTrainClasses
  const judged = candidates(forest, trainClasses, options.includeUntrainedRows ?? false)
  const paths = new Map<Id, PathStep[]>()
  const runThrough = new Set<Id>()
  for (const candidate of judged) {
    if (candidate.kind !== 'leaf') continue
    const path = forest.pathTo(candidate.segment)
    paths.set(candidate.segment.id, path)
    for (const { segment, length } of path.slice(0, -1)) {
      if (segment.origin === 'sampled' && length === segment.tokens.length) runThrough.add(segment.id)
    }
  }
  const owned = new Set<Id>()
  const inRows = new Map<Id, number>()
  const leftWith = new Map<Id, DropReason>()
  const rows: Row[] = []
  const parts = new InjectedParts(log)
  let unclean = 0
  for (const [leafId, path] of paths) {
    if (options.rowPer !== 'call' && runThrough.has(leafId)) continue
    const edits = parts.none ? null : parts.of(path)
    const isUnclean = options.view === 'clean' && edits?.includes(null) === true
    if (isUnclean) unclean += 1
    const reason = options.leave?.get(rowId(options, leafId)) ?? (isUnclean ? 'clean_unknown' : undefined)
    if (reason !== undefined) {
      for (const { segment } of path) if (!leftWith.has(segment.id)) leftWith.set(segment.id, reason)
      continue
    }
    const row = rowOf(forest, { path, edits }, options, trainClasses, owned)
    for (const segment of row.segments) {
      if (segment.trained) owned.add(segment.segmentId)
      if (segment.origin !== 'sampled') continue
      inRows.set(segment.segmentId, Math.max(inRows.get(segment.segmentId) ?? 0, segment.end - segment.start))
    }
    rows.push(row)
  }
  return { rows, unclean, outside: outsideOf(log, judged, inRows, leftWith) }
}

function rowId({ rolloutId }: RowOptions, leafId: Id): string {
  return `${rolloutId}:${leafId}`
}

function outsideOf(
  log: SessionLog,
  judged: ReturnType<typeof candidates>,
  inRows: ReadonlyMap<Id, number>,
  leftWith: ReadonlyMap<Id, DropReason>,
): BuiltRows['outside'] {
  const masked: Partial<Record<MaskReason, number>> = {}
  const notExported: Partial<Record<DropReason, number>> = {}
  for (const segment of log.segments) {
    if (segment.origin !== 'sampled' || !segment.stopCut || segment.tokens.length === 0) continue
    masked.stop_cut = (masked.stop_cut ?? 0) + segment.tokens.length
  }
  for (const candidate of judged) {
    const left = candidate.segment.tokens.length - (inRows.get(candidate.segment.id) ?? 0)
    if (left === 0) continue
    // A leaf lies whole in its own row or in one that runs through it, and that row was left out.
    const reason = candidate.kind === 'dropped' ? candidate.reason : (leftWith.get(candidate.segment.id) ?? 'filtered')
    notExported[reason] = (notExported[reason] ?? 0) + left
  }
  const unseen = unseenTokens(log)
  const bucket = ownBucket(log.session) ?? 'missing_ids'
  if (unseen > 0) notExported[bucket] = (notExported[bucket] ?? 0) + unseen
  return { masked, notExported }
}

function rowOf(
  forest: Forest,
  { path, edits }: { readonly path: readonly PathStep[]; readonly edits: ReturnType<InjectedParts['of']> | null },
  options: RowOptions,
  trainClasses: readonly CallClass[],
  owned: ReadonlySet<Id>,
): Row {
  const isClean = options.view === 'clean'
  const pieces = path.map(({ segment, length }, step) => {
    const tokens = segment.tokens.subarray(0, length)
    const here = edits?.[step] ?? []
    return isClean && here.length > 0 ? withoutInjected(tokens, here) : tokens
  })
  const total = pieces.reduce((sum, { length }) => sum + length, 0)
  const tokens = new Int32Array(total)
  const mask = new Uint8Array(total)
  const logprobs = new Float32Array(total)
  const segments: RowSegment[] = []
  const policySpans: PolicySpan[] = []
  const sampling = new Map<Id, SamplingParams>()
  const kinds = new Set<LogprobKind>()
  let promptLength = total
  const injected: Row['injected'][number][] = []
  let isOther = false
  let offContext = false
  let start = 0
  for (const [step, { segment, length }] of path.entries()) {
    const piece = pieces[step] ?? new Int32Array(0)
    const end = start + piece.length
    const call = forest.callOf(segment)
    tokens.set(piece, start)
    const here = edits?.[step] ?? []
    if (isClean) isOther ||= here.length > 0
    else for (const { labels, ...at } of here) injected.push({ start: start + at.start, end: start + at.end, labels })
    const mixed = options.maskMixedWeights === true && segment.policySpans.some(({ mixing }) => mixing !== 'none')
    const broken = options.wholeAnswersOnly === true && lacksLogprobs(segment)
    const maskReason =
      maskReasonOf(forest, segment, length, trainClasses, owned) ??
      (options.maskCut === true && segment.origin === 'sampled' ? 'cut' : null) ??
      (mixed ? 'mixed_weights' : broken ? 'missing_logprob' : null)
    const trained = segment.origin === 'sampled' && maskReason === null
    segments.push({
      segmentId: segment.id,
      origin: segment.origin,
      callId: segment.callId,
      callClass: call?.intent.callClass ?? 'other',
      choice: segment.choice,
      start,
      end,
      trained,
      maskReason,
    })
    if (segment.origin === 'sampled') {
      promptLength = Math.min(promptLength, start)
      if (call !== null) sampling.set(call.intent.id, call.intent.used)
      if (segment.logprobs !== null && !isOther) kinds.add(segment.logprobKind)
      for (const span of segment.policySpans) {
        if (span.start >= length) continue
        policySpans.push({ ...span, start: start + span.start, end: start + Math.min(span.end, length) })
      }
    }
    if (trained) fillTrained(segment, length, mask, logprobs, start)
    if (trained && isOther) {
      for (let at = start; at < end; at += 1) if (mask[at] === 1) logprobs[at] = Number.NaN
      offContext ||= length > 0
    }
    start = end
  }
  const leaf = path.at(-1)?.segment
  const leafCall = leaf === undefined ? null : forest.callOf(leaf)
  const [kind = 'unknown', ...others] = kinds
  return {
    id: rowId(options, leaf?.id ?? ''),
    rolloutId: options.rolloutId,
    sessionId: forest.log.session.id,
    ...(forest.log.session.policy.name === undefined ? {} : { policy: forest.log.session.policy.name }),
    groupId: options.groupId,
    taskDigest: options.taskDigest,
    leafCallId: leafCall?.intent.id ?? null,
    tokens,
    mask,
    logprobs,
    logprobKind: others.length === 0 ? kind : 'unknown',
    promptLength,
    segments,
    injected,
    offContext,
    policySpans,
    sampling: [...sampling].map(([callId, params]) => ({ callId, params })),
    finishReason: leaf === undefined ? null : (forest.choiceOf(leaf)?.finishReason ?? null),
    fingerprint: leafCall?.intent.fingerprint ?? null,
  }
}

/** Why a sampled segment is not trained in this row, null when it is; null also for what was not sampled. */
function maskReasonOf(
  forest: Forest,
  segment: Segment,
  length: number,
  trainClasses: readonly CallClass[],
  owned: ReadonlySet<Id>,
): MaskReason | null {
  if (segment.origin !== 'sampled') return null
  const call = forest.callOf(segment)
  if (call === null || unusable(call) !== null) return 'undelivered'
  const fault = wireFaultOf(call.commit?.findings ?? [])
  if (fault !== null) return fault
  if (!trainClasses.includes(call.intent.callClass)) return 'class'
  // Only a row that holds the whole segment may own it; a row that forks inside it sees the rest elsewhere.
  if (length < segment.tokens.length || owned.has(segment.id)) return 'owned_elsewhere'
  if (forest.isBroken(segment)) return 'nan_logprob'
  return segment.logprobs === null ? 'missing_logprob' : null
}

function fillTrained(segment: Segment, length: number, mask: Uint8Array, logprobs: Float32Array, at: number): void {
  for (let i = 0; i < length; i += 1) {
    const logprob = logprobAt(segment, i)
    if (logprob === null) continue
    mask[at + i] = 1
    logprobs[at + i] = logprob
  }
}

function lacksLogprobs(segment: Segment): boolean {
  return segment.tokens.some((_, i) => logprobAt(segment, i) === null)
}

/** Null where the engine gave no usable one. */
function logprobAt(segment: Segment, i: number): number | null {
  const logprob = segment.logprobs?.[i] ?? Number.NaN
  const flags = segment.flags?.[i] ?? 0
  return (flags & (tokenFlag.nan | tokenFlag.missing)) !== 0 || !Number.isFinite(logprob) ? null : logprob
}
