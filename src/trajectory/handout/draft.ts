import { type Doubtful, type Id, isDoubtful, type Trust } from '../../core/index.ts'
import { withHindsight } from '../classify/index.ts'
import {
  type CallRecord,
  type DriftCause,
  type Segment,
  type SessionLog,
  type SettledMember,
  tokenFlag,
} from '../contract/index.ts'
import { buildRows } from '../rows/index.ts'
import type { Row } from '../rows-contract.ts'
import type { HandedMaskReason, RowMode, UnusableReason } from './contract.ts'
import { whyOff } from './sampling.ts'

/** A sampled segment of a row, in row positions. */
export interface DraftTurn {
  readonly segmentId: Id
  readonly callId: Id
  readonly start: number
  readonly end: number
  readonly temperature: number | null
  /** Null: it trains. */
  readonly why: HandedMaskReason | null
  readonly versions: readonly { readonly start: number; readonly end: number; readonly labels: readonly string[] }[]
}

/** A row before it is known what of it is owned, or too old. */
export interface DraftRow {
  readonly row: Row
  readonly member: SettledMember
  readonly role: string
  readonly startedAt: number
  readonly forkReason: DriftCause | null
  readonly turns: readonly DraftTurn[]
  readonly logprobs: Float32Array
  readonly unusable: UnusableReason | null
}

/** How rows are made in a run; the same for all of its rounds. */
export interface RowRules {
  readonly rowMode: RowMode
  /** False: answers of mixed weights are context only. */
  readonly trainMixed: boolean
  /** True: tokens that a trainer cannot recompute train all the same. */
  readonly trainConstrained: boolean
  /** Doubtful verdicts whose rollouts train all the same. */
  readonly trusts: readonly Doubtful[]
}

/** The rows of one session of a member, in order. Throws `STORE_CORRUPT`. */
export function draftRows(
  log: SessionLog,
  about: {
    readonly member: SettledMember
    readonly trust: Trust | null
    readonly groupId: Id
    readonly taskDigest: string
  },
  rules: RowRules,
): DraftRow[] {
  const calls = new Map(withHindsight(log).calls.map((call) => [call.intent.id, call]))
  const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
  const { rows } = buildRows(log, {
    rolloutId: about.member.rolloutId,
    groupId: about.groupId,
    taskDigest: about.taskDigest,
    rowPer: rules.rowMode === 'turns' ? 'call' : 'thread',
    maskMixedWeights: !rules.trainMixed,
  })
  return rows.map((row) => {
    const leaf = row.leafCallId === null ? undefined : calls.get(row.leafCallId)
    return {
      row,
      member: about.member,
      role: leaf?.intent.callClass ?? 'other',
      startedAt: leaf?.intent.startedAt ?? 0,
      forkReason: forkReason(row, calls),
      turns: turnsOf(row, { calls, segments, rules }),
      logprobs: logprobsOf(row, segments),
      unusable: about.member.out ?? (about.member.cut === 'mask' ? 'cut' : doubtOf(about.trust, rules)),
    }
  })
}

function doubtOf(trust: Trust | null, { trusts }: RowRules): Doubtful | null {
  return trust !== null && isDoubtful(trust) && !trusts.includes(trust) ? trust : null
}

function turnsOf(
  row: Row,
  {
    calls,
    segments,
    rules,
  }: {
    readonly calls: ReadonlyMap<Id, CallRecord>
    readonly segments: ReadonlyMap<Id, Segment>
    readonly rules: RowRules
  },
): DraftTurn[] {
  return row.segments.flatMap(({ segmentId, origin, callId, start, end, maskReason }): DraftTurn[] => {
    if (origin !== 'sampled' || start === end) return []
    const call = callId === null ? undefined : calls.get(callId)
    const segment = segments.get(segmentId)
    const used = call?.intent.used
    const off =
      maskReason !== null || used === undefined || segment === undefined ? null : whyOff(used, segment.logprobKind)
    return [
      {
        segmentId,
        // What is sampled has a call.
        callId: callId ?? '',
        start,
        end,
        temperature: used?.temperature ?? null,
        why: maskReason ?? (off === 'constrained' && rules.trainConstrained ? null : off),
        versions: row.policySpans
          .filter((span) => span.start >= start && span.end <= end)
          .map((span) => ({ start: span.start, end: span.end, labels: labelsOf(span, call) })),
      },
    ]
  })
}

/** What the weights of a span are called; two names where they changed within it. */
function labelsOf({ policy, mixing }: Row['policySpans'][number], call: CallRecord | undefined): readonly string[] {
  const names =
    mixing === 'mixed'
      ? [call?.commit?.weightVersionBefore, policy.weightVersion, call?.commit?.weightVersionAfter]
      : [policy.weightVersion]
  return [...new Set(names.filter((name): name is string => typeof name === 'string'))]
}

/** The drift at which a row left the one before it: of its first call that has one of this row's own. */
function forkReason(row: Row, calls: ReadonlyMap<Id, CallRecord>): DriftCause | null {
  for (const { callId, origin, trained } of row.segments) {
    if (origin !== 'sampled' || !trained || callId === null) continue
    return calls.get(callId)?.commit?.forks[0]?.cause ?? null
  }
  return null
}

/** Of all sampled tokens, those that do not train included. */
function logprobsOf(row: Row, segments: ReadonlyMap<Id, Segment>): Float32Array {
  const logprobs = new Float32Array(row.tokens.length)
  for (const { segmentId, origin, start, end } of row.segments) {
    if (origin !== 'sampled') continue
    const segment = segments.get(segmentId)
    for (let i = 0; i < end - start; i += 1) {
      const flags = segment?.flags?.[i] ?? 0
      const known = (flags & (tokenFlag.nan | tokenFlag.missing)) === 0
      logprobs[start + i] = known ? (segment?.logprobs?.[i] ?? Number.NaN) : Number.NaN
    }
  }
  return logprobs
}
