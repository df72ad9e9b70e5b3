import type { Id, Task } from '../../core/index.ts'
import { isOutcomeStopped } from '../catalogue/index.ts'
import type {
  AnnouncedVersion,
  Blobs,
  CatalogueReader,
  HandedRow,
  NotOwned,
  RecorderReader,
  SessionLog,
  SettledMember,
  SettledRound,
} from '../contract/index.ts'
import { rewardOfPolicy } from '../contract/index.ts'
import {
  entropiesOf,
  knownTokenTexts,
  MessageSpans,
  observationMask,
  ownBucket,
  rowEntropies,
  sideChannelsOf,
  toolStatuses,
} from '../rows/index.ts'
import type { MessageSpan } from '../rows-contract.ts'
import type { RequestReader } from '../select/index.ts'
import type { HandedMaskReason, HandedMember, HandedRound, HandedRowWhole, Place } from './contract.ts'
import { type DraftRow, draftRows, type RowRules } from './draft.ts'
import { type RoundTree, roundTree, type TreeSource } from './tree.ts'
import { VersionNumbers } from './version-numbers.ts'

/** What a hand-out reads. */
export interface HandoutSource {
  readonly recorder: Pick<RecorderReader, 'sessions' | 'session' | 'events'>
  readonly blobs: Pick<Blobs, 'get'>
  readonly catalogue: Pick<
    CatalogueReader,
    'group' | 'rollout' | 'rollouts' | 'task' | 'rounds' | 'fingerprint' | 'tokenTexts'
  >
  readonly trainer: TreeSource['trainer']
}

/** What of a run bears on the rows of a round. */
export interface HandoutRules extends RowRules {
  /** Rows and rewards of this policy; null: there is one. */
  readonly policy: string | null
  readonly versions: readonly AnnouncedVersion[]
  /** The weights that ages are counted from; null: nothing is too old. */
  readonly liveOrdinal: number | null
  /** Rows of which a token is older are unusable; null: none is. */
  readonly maxAge: number | null
}

/** The rows of a settled round, before it is known which tokens are owned elsewhere. */
export interface DraftRound {
  readonly settled: SettledRound
  readonly task: Task
  readonly labels: Readonly<Record<string, string>>
  readonly members: readonly HandedMember[]
  readonly rows: readonly DraftRow[]
  readonly rules: HandoutRules
  /** By `<call id>/<choice>`. */
  readonly entropies: ReadonlyMap<string, Float32Array>
  /** By row; empty where nobody asked. */
  readonly spans: ReadonlyMap<string, readonly MessageSpan[]>
  /** Null but in row mode `tree`. */
  readonly tree: RoundTree | null
}

/** How it is told whose the tokens of rows are. */
export interface SpanReading {
  readonly readRequest: RequestReader
  /** Learns the texts of a session's tokens from its engine, as far as it tells them. */
  learnTexts(sessionId: Id): Promise<void>
}

/**
 * Reads a settled round. The same facts give the same rows. `spanReading` null: whose their tokens are is not asked for. Throws
 * `NOT_FOUND`, `STORE_CORRUPT`.
 */
export async function draftRound(
  source: HandoutSource,
  settled: SettledRound,
  rules: HandoutRules,
  spanReading: SpanReading | null = null,
): Promise<DraftRound> {
  const { recorder, catalogue, blobs } = source
  const { groupId, round } = settled
  const { taskDigest } = await catalogue.group(groupId)
  const rounds = await catalogue.rounds(groupId)
  const spec = rounds.find((one) => one.round === round)?.spec
  const fork = spec?.fork ?? null
  const forkedFrom = fork === null ? null : { rollout_id: fork.rolloutId, call_id: fork.callId }
  // All at once: each read is a way to another thread, and 32 members one after the other are a hundred of them.
  const read = await Promise.all(
    settled.members.map(async (member) => {
      const sessions = (await recorder.sessions({ rolloutId: member.rolloutId })).filter(
        (session) => ownBucket(session) === null && (rules.policy === null || session.policy.name === rules.policy),
      )
      const [{ harness, labels, verdicts }, ...logs] = await Promise.all([
        catalogue.rollout(member.rolloutId),
        ...sessions.map(({ id }) => recorder.session(id, { bodies: spanReading === null ? [] : 'all' })),
      ])
      const trust = verdicts.find(({ id }) => id === member.verdict?.id)?.trust ?? null
      const findings = new Set(logs.flatMap(({ calls }) => calls.flatMap(({ commit }) => commit?.findings ?? [])))
      return {
        entropies: await Promise.all(
          logs
            .flatMap(sideChannelsOf)
            .flatMap(({ what, sha256, callId, choice }) =>
              what === 'entropies'
                ? [blobs.get(sha256).then((bytes) => [`${callId}/${choice}`, entropiesOf(bytes)] as const)]
                : [],
            ),
        ),
        member: memberOf(member, rules.policy, { harness, labels, findings: [...findings], forked_from: forkedFrom }),
        ...(await rowsAndSpans(source, logs, { about: { member, trust, groupId, taskDigest }, rules, spanReading })),
      }
    }),
  )
  return {
    settled,
    task: await catalogue.task(taskDigest),
    labels: spec?.labels ?? {},
    members: read.map(({ member }) => member),
    rows: aged(
      read.flatMap(({ rows }) => rows),
      rules,
    ),
    rules,
    entropies: new Map(read.flatMap(({ entropies }) => entropies)),
    spans: new Map(read.flatMap(({ spans }) => spans)),
    tree: rules.rowMode === 'tree' ? await roundTree(source, settled) : null,
  }
}

async function rowsAndSpans(
  source: HandoutSource,
  logs: readonly SessionLog[],
  {
    about,
    rules,
    spanReading,
  }: {
    readonly about: Parameters<typeof draftRows>[1]
    readonly rules: HandoutRules
    readonly spanReading: SpanReading | null
  },
): Promise<{ readonly rows: readonly DraftRow[]; readonly spans: [string, readonly MessageSpan[]][] }> {
  const byLog = logs.map((log) => ({ log, rows: draftRows(log, about, rules) }))
  const rows = byLog.flatMap((one) => one.rows)
  if (spanReading === null) return { rows, spans: [] }
  const statuses = toolStatuses(await source.recorder.events({ rolloutId: about.member.rolloutId }))
  const { readRequest } = spanReading
  const spans: [string, readonly MessageSpan[]][] = []
  for (const { log, rows: own } of byLog) {
    await spanReading.learnTexts(log.session.id)
    const texts = await knownTokenTexts(source, log)
    const ofLog = new MessageSpans({ log, readRequest, view: 'as_sampled', texts, statuses })
    for (const { row } of own) spans.push([row.id, ofLog.of(row)])
  }
  return { rows, spans }
}

/** What a hand-out would own: nothing of a row that may not train. */
export function rowsToOwn({ rows }: DraftRound): readonly HandedRow[] {
  return rows.map(({ row, turns, unusable }) => ({
    rowId: row.id,
    segmentIds: unusable === null ? turns.flatMap(({ segmentId, why }) => (why === null ? [segmentId] : [])) : [],
    labels: [
      ...new Set(turns.flatMap(({ why, versions }) => (why === null ? versions.flatMap(({ labels }) => labels) : []))),
    ],
  }))
}

/** The round as it is handed out. `claim` null: to read only. */
export function handedRound(
  draft: DraftRound,
  claim: { readonly id: Id | null; readonly notOwned: NotOwned },
): HandedRound {
  const { settled, task, rules } = draft
  const elsewhere = new Set(claim.notOwned.segmentIds)
  const used = new Set(claim.notOwned.usedRows)
  const rows = draft.rows.map((row) => masked(row, { elsewhere, used: used.has(row.row.id) }))
  const trains = rows.map(({ mask }) => ones(mask))
  const ofGroup = trains.reduce((sum, count) => sum + count, 0)
  const numbers = new VersionNumbers(rules.versions)
  return {
    run_id: settled.runId,
    group_id: settled.groupId,
    round: settled.round,
    row_mode: rules.rowMode,
    claim_id: claim.id,
    policy: { name: rules.policy ?? 'default', version: rules.liveOrdinal },
    task: { digest: task.digest, name: task.name, instruction: task.instruction },
    outcome_stopped: isOutcomeStopped(settled),
    labels: draft.labels,
    members: draft.members,
    nodes: draft.tree?.nodes ?? null,
    rows: rows.map((one, i): HandedRowWhole => {
      const own = draft.rows.flatMap(({ member }, at) =>
        member.rolloutId === one.draft.member.rolloutId ? [trains[at] ?? 0] : [],
      )
      const training = own.filter((count) => count > 0).length
      const count = trains[i] ?? 0
      const entropies = rowEntropies(one.draft.row, draft.entropies)
      const spans = draft.spans.get(one.draft.row.id)
      return {
        ...headOf(one, { numbers, tree: draft.tree, policy: rules.policy }),
        is_last: isLast(one.draft, draft.rows),
        weight: count === 0 ? 0 : 1 / training,
        rows_of_rollout: training,
        trained_tokens_of: { row: count, rollout: own.reduce((sum, tokens) => sum + tokens, 0), group: ofGroup },
        token_ids: one.draft.row.tokens,
        loss_mask: one.mask,
        logprobs: one.draft.logprobs,
        ...(entropies === undefined ? {} : { entropies }),
        ...(spans === undefined
          ? {}
          : {
              message_spans: spans.map(({ toolCallId, ...span }) => ({ ...span, tool_call_id: toolCallId })),
              observation_mask: observationMask(one.draft.row.tokens.length, spans),
            }),
      }
    }),
  }
}

interface MaskedRow {
  readonly draft: DraftRow
  readonly mask: Uint8Array
  readonly reasons: readonly (readonly [number, number, HandedMaskReason])[]
}

/** Without a callback: masks are the longest thing here. */
function ones(mask: Uint8Array): number {
  let sum = 0
  for (const bit of mask) sum += bit
  return sum
}

/** Which tokens train, and why the other sampled ones do not. */
function masked(draft: DraftRow, { elsewhere, used }: { elsewhere: ReadonlySet<Id>; used: boolean }): MaskedRow {
  const mask = new Uint8Array(draft.row.tokens.length)
  const reasons: [number, number, HandedMaskReason][] = []
  for (const { segmentId, start, end, why: own } of draft.turns) {
    const why = draft.unusable ?? (used ? 'used' : null) ?? own ?? (elsewhere.has(segmentId) ? 'owned_elsewhere' : null)
    if (why !== null) {
      reasons.push([start, end, why])
      continue
    }
    mask.set(draft.row.mask.subarray(start, end), start)
    for (let at = start; at < end; at += 1) {
      if (mask[at] === 1) continue
      const last = reasons.at(-1)
      if (last?.[1] === at && last[2] === 'missing_logprob') last[1] = at + 1
      else reasons.push([at, at + 1, 'missing_logprob'])
    }
  }
  return { draft, mask, reasons }
}

function headOf(
  { draft: { row, member, role, forkReason, turns, unusable }, reasons }: MaskedRow,
  {
    numbers,
    tree,
    policy,
  }: { readonly numbers: VersionNumbers; readonly tree: RoundTree | null; readonly policy: string | null },
) {
  const places = turns.map(({ start, end }): Place => [start, end])
  return {
    row_id: row.id,
    rollout_id: row.rolloutId,
    session_id: row.sessionId,
    ...(row.policy === undefined ? {} : { policy: row.policy }),
    role,
    node_ids: [
      ...new Set(
        row.segments.flatMap(({ callId, origin }) => (callId === null || origin !== 'sampled' ? [] : [callId])),
      ),
    ],
    fork_reason: forkReason,
    end: member.end,
    cut: member.cut,
    usable: unusable === null,
    unusable_reason: unusable,
    reward: rewardOf(member, policy),
    prompt_len: row.promptLength,
    n_tokens: row.tokens.length,
    versions: versionsOf(row.tokens.length, turns, numbers),
    temperatures: turns.map(({ start, end, temperature }) => [start, end, temperature] as const),
    turn_spans: places,
    turn_nodes: tree === null ? null : turns.map(({ callId }) => tree.nodeOf(row.rolloutId, callId)),
    observation_spans: between(places, row.tokens.length),
    mask_reasons: reasons,
    logprob_kind: row.logprobKind,
  }
}

/** All tokens of a row, without a gap. */
function versionsOf(
  length: number,
  turns: DraftRow['turns'],
  numbers: VersionNumbers,
): readonly (readonly [number, number, number, number])[] {
  const spans: [number, number, number, number][] = []
  const add = (start: number, end: number, lowest: number, highest: number): void => {
    const last = spans.at(-1)
    if (start === end) return
    if (last !== undefined && last[2] === lowest && last[3] === highest) last[1] = end
    else spans.push([start, end, lowest, highest])
  }
  let at = 0
  for (const turn of turns) {
    add(at, turn.start, -1, -1)
    at = turn.start
    for (const { start, end, labels } of turn.versions) {
      add(at, start, ...numbers.between([]))
      add(start, end, ...numbers.between(labels))
      at = end
    }
    add(at, turn.end, ...numbers.between([]))
    at = turn.end
  }
  add(at, length, -1, -1)
  return spans
}

/** What lies behind the first turn and in none. */
function between(turns: readonly Place[], length: number): Place[] {
  const found: Place[] = []
  turns.forEach(([, end], i) => {
    const next = turns[i + 1]?.[0] ?? length
    if (next > end) found.push([end, next])
  })
  return found
}

/** Rows whose oldest token that trains is older than the run allows, or was sampled by weights that are gone, are stale. */
function aged(rows: readonly DraftRow[], { versions, liveOrdinal, maxAge }: HandoutRules): readonly DraftRow[] {
  const numbers = new VersionNumbers(versions)
  return rows.map((draft) => {
    if (draft.unusable !== null) return draft
    const labels = draft.turns.flatMap((turn) =>
      turn.why === null ? turn.versions.flatMap((span) => [...span.labels]) : [],
    )
    if (labels.some((label) => numbers.isGone(label))) return { ...draft, unusable: 'stale' }
    if (maxAge === null || liveOrdinal === null || draft.turns.every(({ why }) => why !== null)) return draft
    const [oldest] = numbers.between(labels)
    return liveOrdinal - oldest > maxAge ? { ...draft, unusable: 'stale' } : draft
  })
}

/** The number of a member as it is of one policy. */
function rewardOf({ verdict }: SettledMember, policy: string | null): number | null {
  return verdict === null ? null : rewardOfPolicy(verdict, policy)
}

function isLast({ row, member, startedAt }: DraftRow, all: readonly DraftRow[]): boolean {
  const own = all.filter((other) => other.member.rolloutId === member.rolloutId)
  const last = own.reduce((latest, other) => (other.startedAt >= latest.startedAt ? other : latest))
  return last.row.id === row.id && last.startedAt === startedAt
}

function memberOf(
  member: SettledMember,
  policy: string | null,
  more: Pick<HandedMember, 'harness' | 'labels' | 'findings' | 'forked_from'>,
): HandedMember {
  const { rolloutId, slot, attempt, out, end, cut, verdict, sampledTokens } = member
  return {
    rollout_id: rolloutId,
    slot,
    attempt,
    out,
    end,
    cut,
    reward: rewardOf(member, policy),
    status: verdict?.status ?? null,
    sampled_tokens: sampledTokens,
    ...more,
  }
}
