/** What becomes of slow tasks while weights change fast, under each mode of staleness: counted from the rows that were handed out. */
import { type Claim, type Client, converse, type Opened, seeded } from './client.ts'

export type Mode = 'report' | 'cancel' | 'gate'

export interface StaleSizes {
  readonly groups: number
  readonly n: number
  readonly perStep: number
  readonly maxAge: number
  readonly toolMs: number
}

interface Share {
  fast: number
  slow: number
}

export interface StaleRun {
  readonly mode: Mode
  readonly seconds: number
  readonly pushes: number
  /** Pushes that had to wait for groups. */
  readonly gated: number
  readonly groups: Share
  readonly trainedGroups: Share
  /** Of all that was sampled, also by those that were stopped. */
  readonly sampledTokens: Share
  readonly trainedTokens: Share
  readonly usableRows: number
  readonly oldest: number
  /** Usable rows that are older than the run allows. */
  readonly over: number
  /** Rows that were handed out as too old to train. */
  readonly stale: number
  readonly stopped: number
}

const turnsOf: Share = { fast: 2, slow: 16 }

export async function runStale(client: Client, mode: Mode, sizes: StaleSizes): Promise<StaleRun> {
  const { groups, n, perStep, maxAge, toolMs } = sizes
  const run = `stale-${mode}`
  const room = (maxAge + 1) * perStep
  await client.openRun(run, {
    staleness: { max: maxAge, mode },
    groups_per_step: perStep,
    capacity: { groups: room },
  })
  const random = seeded(7)
  const kinds = new Map<string, keyof Share>(
    Array.from({ length: groups }, (_, at) => [`${run}-${at}`, random() < 0.3 ? 'slow' : 'fast']),
  )
  const kindOf = (group: string): keyof Share => kinds.get(group) ?? 'fast'
  const count = (): Share => ({ fast: 0, slow: 0 })
  const told = { groups: count(), trainedGroups: count(), sampledTokens: count(), trainedTokens: count() }
  for (const kind of kinds.values()) told.groups[kind] += 1
  const seen = { usableRows: 0, oldest: 0, over: 0, stale: 0, stopped: 0, pushes: 0, gated: 0 }
  const waiting = [...kinds.keys()]
  const running = new Set<Promise<void>>()

  const live = async (opened: Opened, group: string): Promise<void> => {
    const turns = turnsOf[kindOf(group)]
    if ((await converse(opened, turns, toolMs)) === turns) await client.end(opened.rollout_id, 1)
  }
  /** Groups as long as there is room for them. */
  const feed = async (): Promise<void> => {
    for (;;) {
      const [group] = waiting
      if (group === undefined) return
      const asked = { group_id: group, task: { name: kindOf(group), instruction: kindOf(group) }, n }
      const { status, body } = await client.send('POST', `/runs/${run}/groups`, { groups: [asked] })
      if (status === 429) return
      if (status >= 400) throw new Error(`group ${group}: ${status} ${JSON.stringify(body)}`)
      waiting.shift()
      for (let member = 0; member < n; member += 1) {
        const opened = await client.ask<Opened>('POST', '/rollouts', { group_id: group })
        const lived: Promise<void> = live(opened, group).finally(() => running.delete(lived))
        running.add(lived)
      }
    }
  }
  const train = async (claim: Claim, step: number): Promise<void> => {
    const kind = kindOf(claim.group_id)
    const { rows, policy, claim_id } = await client.rows(claim)
    const usable = rows.filter((row) => row.usable)
    for (const { versions, trained_tokens_of: trained } of usable) {
      const low = Math.min(...versions.flatMap(([, , lowest]) => (lowest === -1 ? [] : [lowest])))
      const age = (policy.version ?? 0) - low
      seen.usableRows += 1
      seen.oldest = Math.max(seen.oldest, age)
      if (age > maxAge) seen.over += 1
      told.trainedTokens[kind] += trained.row
    }
    if (usable.length > 0) told.trainedGroups[kind] += 1
    seen.stale += rows.filter((row) => row.unusable_reason === 'stale').length
    await client.dispose(run, { rows, policy, claim_id, members: [] }, step)
  }
  const say = (version: number, phase: string) =>
    client.send<{ stopped?: readonly string[]; error?: { code: string } }>('POST', `/runs/${run}/policy`, {
      incarnation: 1,
      version,
      phase,
      ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
      label: `${run}-${version}`,
    })
  const isOver = async (): Promise<boolean> => {
    if (waiting.length > 0) return false
    const { counts } = await client.ask<{ counts: Record<string, number> }>('GET', `/runs/${run}`)
    return (counts['running'] ?? 0) + (counts['settled_unclaimed'] ?? 0) + (counts['claimed'] ?? 0) === 0
  }

  const began = performance.now()
  let version = 1
  await say(version, 'live')
  let since = 0
  while (!(await isOver())) {
    await feed()
    for (const claim of await client.claim(run, { max_groups: 1, wait_s: 1 })) {
      await train(claim, version)
      since += 1
    }
    if (since < perStep) continue
    // Weights are pushed as soon as there is a step's worth of groups; under a gate, perhaps after more of them.
    const pausing = await say(version + 1, 'pausing')
    if (pausing.body.error?.code === 'GATE') {
      seen.gated += 1
      continue
    }
    if (pausing.status >= 400) throw new Error(`pausing: ${JSON.stringify(pausing.body)}`)
    version += 1
    const { status, body } = await say(version, 'live')
    if (status >= 400) throw new Error(`live: ${JSON.stringify(body)}`)
    for (const id of body.stopped ?? []) {
      const { end, end_detail: why } = await client.ask('GET', `/rollouts/${id}`)
      if (end !== 'cancelled' || !String(why).startsWith('stale: '))
        throw new Error(`${id} does not say that it is stale`)
      seen.stopped += 1
    }
    seen.pushes += 1
    since = 0
  }
  const seconds = (performance.now() - began) / 1000
  await Promise.all(running)
  await client.ask('POST', `/runs/${run}/close`, {})
  for (const group of kinds.keys()) {
    const { members } = await client.ask<{ members: readonly { sampled_tokens: number }[] }>(
      'GET',
      `/groups/${group}/rounds/0/rows`,
    )
    told.sampledTokens[kindOf(group)] += members.reduce((sum, one) => sum + one.sampled_tokens, 0)
  }
  return { mode, seconds, ...seen, ...told }
}

/** The slow tasks' part. */
export function slowShare({ fast, slow }: Share): number {
  return slow / Math.max(1, fast + slow)
}
