import type { CallClass, Id } from '../../core/index.ts'
import {
  type CallRecord,
  familyOf,
  namesOf,
  placesOf,
  type StoreReader,
  type TreeMember,
  treeOf,
} from '../../trajectory/index.ts'
import { rowsOf, segmentMasks } from '../../read/index.ts'
import type { FamilyLine, FamilyPage, TreeLine } from './contract.ts'
import { callLine, type ReadSession } from './session-pages.ts'

/** Lines of a family that one reply holds at most. */
const mostFamilyLines = 500
/** Columns of the drawing of a tree. */
const mostLanes = 12
/** Classes of calls whose answers train. */
const trainedClasses: ReadonlySet<CallClass> = new Set(['main', 'subagent'])

/** The calls of a session as a tree, in order of arrival. */
export function treeLines(session: ReadSession): readonly TreeLine[] {
  const { log, masks } = session
  const seqs = new Map(log.calls.map(({ intent }) => [intent.id, intent.seq]))
  const parents = log.calls.map((call) => parentOf(session, call, seqs))
  const lanes = lanesOf(
    log.calls.map(({ intent }) => intent.seq),
    parents,
  )
  return log.calls.map((call, at) => {
    const line = callLine(session, call)
    const reasons = (call.commit?.choices ?? []).map(({ segmentId }) => masks.get(segmentId ?? '')?.reason ?? null)
    return {
      sessionId: log.session.id,
      role: log.session.role,
      seq: line.seq,
      class: call.intent.callClass,
      outcome: line.outcome,
      delivery: line.delivery,
      parent: parents[at] ?? null,
      ...(lanes[at] ?? { lane: 0, out: [], through: [] }),
      sampledTokens: line.sampledTokens,
      replayedTokens: line.replayedTokens,
      trained: line.trained,
      maskReason:
        reasons.find((reason) => reason !== null) ?? (trainedClasses.has(call.intent.callClass) ? null : 'class'),
      forks: (call.commit?.forks ?? []).slice(0, 4).map(({ cause, fromCallId, tokensAffected }) => ({
        cause,
        fromSeq: seqs.get(fromCallId ?? '') ?? null,
        tokensAffected,
      })),
      preview: line.preview.slice(0, 100),
    }
  })
}

/** The call whose answer stands last before what a call was asked. */
function parentOf({ segments, log }: ReadSession, call: CallRecord, seqs: ReadonlyMap<Id, number>): number | null {
  let here = segments.get(call.commit?.promptLeaf ?? '')
  for (let steps = 0; here !== undefined && steps <= log.segments.length; steps += 1) {
    if (here.choice !== null && here.callId !== null && here.callId !== call.intent.id) {
      return seqs.get(here.callId) ?? null
    }
    here = segments.get(here.parent?.segmentId ?? '')
  }
  return null
}

type Lane = Pick<TreeLine, 'lane' | 'out' | 'through'>

/**
 * Columns of a drawing: the first call that goes on from another stands in its column, each further one in a column that
 * begins at the other and is kept free until there. What lies beyond {@link mostLanes} shares the last one.
 */
function lanesOf(seqs: readonly number[], parents: readonly (number | null)[]): readonly Lane[] {
  const rowOf = new Map(seqs.map((seq, row) => [seq, row]))
  const children = Map.groupBy(seqs.keys(), (row) => rowOf.get(parents[row] ?? -1) ?? -1)
  const given = new Map<number, number>()
  const columns: { from: number; until: number }[] = []
  const take = (row: number, until: number): number => {
    const free = columns.findIndex((column) => column.until < row)
    const lane = free === -1 ? columns.length : free
    columns[lane] = { from: row, until }
    return lane
  }
  const shown = (lanes: readonly number[]): readonly number[] => [
    ...new Set(lanes.map((lane) => Math.min(lane, mostLanes - 1))),
  ]
  return seqs.map((_, row) => {
    const lane = given.get(row) ?? take(row, row)
    const through = columns.flatMap(({ from, until }, other) =>
      other !== lane && from < row && until > row ? [other] : [],
    )
    const out = (children.get(row) ?? []).map((child, nth) => {
      if (nth === 0) columns[lane] = { from: row, until: child }
      const own = nth === 0 ? lane : take(row, child)
      given.set(child, own)
      return own
    })
    return { lane: Math.min(lane, mostLanes - 1), out: shown(out), through: shown(through) }
  })
}

/** The family of a rollout as lines, each rollout below the place at which it goes on from another. Throws `NOT_FOUND`. */
export async function familyPage(reader: StoreReader, rolloutId: Id): Promise<FamilyPage> {
  const members = await familyOf(reader, rolloutId)
  const names = namesOf(members)
  const nodes = new Map(treeOf(members).map((node) => [node.call, node]))
  const calls = new Map(
    members.flatMap(({ log }) =>
      log.calls.map(({ intent }) => [intent.id, { sessionId: log.session.id, seq: intent.seq }] as const),
    ),
  )
  const lines: FamilyLine[] = []
  const add = (member: TreeMember, depth: number): void => {
    const places = placesOf(member.log, names)
    lines.push({ ...memberLine(member), depth, calls: places.length })
    const forks = Map.groupBy(
      members.filter(({ parent }) => parent === member.rolloutId),
      ({ log }) => names.get(log.session.forkedFrom?.callId ?? '') ?? log.session.forkedFrom?.callId ?? '',
    )
    for (const [call, own] of [...forks].toSorted(([a], [b]) => places.indexOf(a) - places.indexOf(b))) {
      const node = nodes.get(call)
      const at = calls.get(call) ?? { sessionId: member.log.session.id, seq: 0 }
      const value = { value: node?.value ?? null, count: node?.count ?? 0 }
      lines.push({ kind: 'place', depth: depth + 1, call: places.indexOf(call) + 1, ...at, ...value })
      for (const child of own) add(child, depth + 2)
    }
  }
  for (const root of members.filter(({ parent }) => parent === null)) add(root, 0)
  return { lines: lines.slice(0, mostFamilyLines), left: Math.max(0, lines.length - mostFamilyLines) }
}

function memberLine({
  rolloutId,
  reward,
  log,
}: TreeMember): Omit<Extract<FamilyLine, { kind: 'rollout' }>, 'depth' | 'calls'> {
  const masks = segmentMasks(log, rowsOf(log, null))
  const sampled = log.segments.filter(({ origin }) => origin === 'sampled')
  const tokens = (of: typeof sampled): number => of.reduce((total, segment) => total + segment.tokens.length, 0)
  return {
    kind: 'rollout',
    rolloutId,
    sessionId: log.session.id,
    reward,
    replayedCalls: log.events.filter((event) => event.kind === 'replay' && event.phase === 'answered').length,
    sampledTokens: tokens(sampled),
    trainedTokens: tokens(sampled.filter(({ id }) => masks.get(id)?.trained === true)),
  }
}
