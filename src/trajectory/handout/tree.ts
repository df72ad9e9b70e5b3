import type { Id } from '../../core/index.ts'
import type { CatalogueReader, RecorderReader, SettledRound, TrainerBook } from '../contract/index.ts'
import { conversationCalls, familyOf, namesOf, placesOf, type TreeMember } from '../tree/index.ts'
import type { HandedNode } from './contract.ts'

/** What the nodes of a round are read from. */
export interface TreeSource {
  readonly recorder: Pick<RecorderReader, 'sessions' | 'session'>
  readonly catalogue: Pick<CatalogueReader, 'rollout' | 'rollouts' | 'rounds'>
  readonly trainer: Pick<TrainerBook, 'settleOrder'>
}

/** The families of a round's members, cut at the places where rollouts part. */
export interface RoundTree {
  /** Parents before children. */
  readonly nodes: readonly HandedNode[]
  /** Index of the node that an answer of a rollout belongs to; one beside the conversation belongs to the rollout's last node. */
  nodeOf(rolloutId: Id, callId: Id): number
}

/** A rollout of a family with the number that its round settled with. */
interface Counted extends TreeMember {
  readonly order: number
}

/**
 * A node is a run of answers that the same rollouts came through. It counts what had settled when this round did, by the numbers of the
 * settled lists: a later fork or verdict changes nothing of it. Throws `NOT_FOUND`, `STORE_CORRUPT`.
 */
export async function roundTree(source: TreeSource, settled: SettledRound): Promise<RoundTree> {
  const nodes: HandedNode[] = []
  const places = new Map<string, number>()
  const last = new Map<Id, number>()
  const until = await source.trainer.settleOrder(settled.groupId, settled.round)
  for (const { rolloutId } of settled.members) {
    if (last.has(rolloutId)) continue
    const family: Counted[] = []
    for (const member of await familyOf(source, rolloutId)) {
      const number = await settledNumber(source, settled.runId, member.rolloutId)
      if (number === null || until === null || number.order > until) continue
      family.push({ ...member, reward: number.reward, order: number.order })
    }
    addFamily(family, { nodes, places, last })
  }
  return {
    nodes,
    nodeOf: (rolloutId, callId) => places.get(placeName(rolloutId, callId)) ?? last.get(rolloutId) ?? -1,
  }
}

/** What a rollout's round settled for it, and when; null where it has not, or elsewhere. A member without a part has no number. */
async function settledNumber(
  { catalogue, trainer }: TreeSource,
  runId: Id,
  rolloutId: Id,
): Promise<{ readonly reward: number | null; readonly order: number } | null> {
  const { groupId } = await catalogue.rollout(rolloutId)
  for (const { round, settled } of await catalogue.rounds(groupId)) {
    const member = settled?.members.find((one) => one.rolloutId === rolloutId)
    if (settled === null || member === undefined || settled.runId !== runId) continue
    const order = await trainer.settleOrder(groupId, round)
    return order === null ? null : { reward: member.out === null ? (member.verdict?.reward ?? null) : null, order }
  }
  return null
}

function addFamily(
  family: readonly Counted[],
  into: { readonly nodes: HandedNode[]; readonly places: Map<string, number>; readonly last: Map<Id, number> },
): void {
  const names = namesOf(family)
  const steps = new Map(family.map((member) => [member.rolloutId, stepsOf(member, names)]))
  const through = new Map<string, Counted[]>()
  for (const member of family) {
    for (const step of steps.get(member.rolloutId) ?? []) through.set(step, [...(through.get(step) ?? []), member])
  }
  const made = new Map<string, number>()
  const nodeOf = (members: readonly Counted[], parent: number | null, depth: number): number => {
    const key = members.map(({ rolloutId }) => rolloutId).join(' ')
    const known = made.get(key)
    if (known !== undefined) return known
    const rewards = members.flatMap(({ reward }) => (reward === null ? [] : [reward]))
    const value = rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length
    const rollouts = members.map(({ rolloutId }) => rolloutId)
    made.set(key, into.nodes.length)
    return into.nodes.push({ parent, depth, rollouts, count: rewards.length, value }) - 1
  }
  // Rollouts that part before the first answer are one family all the same.
  const shares = new Set([...steps.values()].map(([first]) => first)).size === 1
  const root = shares ? null : nodeOf(family, null, 0)
  for (const member of family) {
    const calls = conversationCalls(member.log)
    let node = root
    for (const [depth, step] of (steps.get(member.rolloutId) ?? []).entries()) {
      node = nodeOf(through.get(step) ?? [], node, depth)
      into.places.set(placeName(member.rolloutId, calls[depth]?.intent.id ?? ''), node)
      into.last.set(member.rolloutId, node)
    }
  }
}

/**
 * The answers of a rollout, each told by the place that it led to: whoever stands there had it. The last one led nowhere, and is its
 * rollout's alone.
 */
function stepsOf({ rolloutId, log }: Counted, names: ReadonlyMap<Id, Id>): readonly string[] {
  return [...placesOf(log, names).slice(1), `end of ${rolloutId}`]
}

function placeName(rolloutId: Id, callId: Id): string {
  return `${rolloutId} ${callId}`
}
