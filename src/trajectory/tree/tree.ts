import type { Id } from '../../core/index.ts'
import type { CallRecord, SessionLog } from '../contract/index.ts'

/** A rollout of a family: one that others go on from, or that goes on from another. */
export interface TreeMember {
  readonly rolloutId: Id
  /** The rollout that it goes on from; null: it began at the beginning. */
  readonly parent: Id | null
  /** Null where it has no number: it is shown and counts in no value. */
  readonly reward: number | null
  /** Its agent's session; bodies are not needed. */
  readonly log: SessionLog
}

/** A place of the tree: what was asked at a call, by one rollout or by several that share their past until there. */
export interface TreeNode {
  /** The call that asked it first. */
  readonly call: Id
  /** The place before it; null for the first. */
  readonly parent: Id | null
  /** Number of calls of the conversation before it. */
  readonly depth: number
  /** The rollouts that came through it, in the order of the members. */
  readonly rollouts: readonly Id[]
  /** How many of them have a reward. */
  readonly count: number
  /** Mean of their rewards: what the place turned out to be worth. Null where none has one. */
  readonly value: number | null
}

/**
 * The places of a family with their values, the first ones first. Rollouts share a place as long as the answers before it were
 * replayed: two that were asked the same and answered by the model each for itself stand at two places behind that.
 */
export function treeOf(members: readonly TreeMember[]): readonly TreeNode[] {
  const names = namesOf(members)
  const nodes = new Map<Id, { parent: Id | null; depth: number; rollouts: Id[]; rewards: number[] }>()
  for (const { rolloutId, reward, log } of members) {
    const places = placesOf(log, names)
    for (const [depth, call] of places.entries()) {
      const node = nodes.get(call) ?? { parent: places[depth - 1] ?? null, depth, rollouts: [], rewards: [] }
      nodes.set(call, node)
      node.rollouts.push(rolloutId)
      if (reward !== null) node.rewards.push(reward)
    }
  }
  return [...nodes]
    .map(([call, { parent, depth, rollouts, rewards }]) => {
      const value = rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length
      return { call, parent, depth, rollouts, count: rewards.length, value }
    })
    .toSorted((a, b) => a.depth - b.depth)
}

/** The places that a rollout came through, by the calls that asked first. */
export function placesOf(log: SessionLog, names: ReadonlyMap<Id, Id>): readonly Id[] {
  return conversationCalls(log).map(({ intent }) => names.get(intent.id) ?? intent.id)
}

/** The calls of a rollout's conversation, one for each of its places. */
export function conversationCalls({ calls }: SessionLog): readonly CallRecord[] {
  return calls.filter(
    ({ intent, commit }) => intent.callClass === 'main' && commit !== null && commit.outcome.kind !== 'refused',
  )
}

/**
 * Parents stand before children. Of each call that asked again what another one had asked: which one asked it first. The first call of a child that the engine was
 * asked is its parent's: the answers differ, not the request.
 */
export function namesOf(members: readonly TreeMember[]): ReadonlyMap<Id, Id> {
  const names = new Map<Id, Id>()
  for (const { log } of members) {
    const replayed = new Set<Id>()
    for (const event of log.events) {
      if (event.kind !== 'replay' || event.of === null) continue
      if (event.phase === 'answered' && event.callId !== null) {
        names.set(event.callId, names.get(event.of) ?? event.of)
        replayed.add(event.callId)
      }
      if (event.phase !== 'arrived') continue
      const first = log.calls.find(({ intent }) => intent.callClass === 'main' && !replayed.has(intent.id))
      if (first !== undefined) names.set(first.intent.id, names.get(event.of) ?? event.of)
    }
  }
  return names
}
