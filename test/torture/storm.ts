/** What storms over nodes have in common: a harness, nodes that are held, killed and started again, and what must hold afterwards. */
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { fsck, openReader, type RolloutView, type StoreReader } from '../../src/trajectory/index.ts'
import { type Coordinator, type Running, started } from '../cli/running-nodes.ts'

const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))

/** Arguments of the run of a storm, of `n` members for each of these tasks. */
export function stormRun(names: readonly string[], n: number): readonly string[] {
  const only = names.flatMap((name) => ['--task', name])
  return ['run', tasks, ...only, '--n', String(n), '--min-usable', '0', '--harness', 'one-call', '--json']
}

/** One call, in the node's own process and without a box: what is tested is what becomes of jobs. It waits while its node is told to hold. */
export const stormHarness = `import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
export default {
  name: 'one-call', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'none', replays: true,
  run: async ({ baseUrl, apiKey, model, prompt, signal }) => {
    const answer = await fetch(baseUrl + '/chat/completions', {
      method: 'POST',
      headers: { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }], max_tokens: 16 }),
      signal,
    })
    await answer.text()
    const hold = process.env.STORM_HOLD
    while (existsSync(hold)) {
      try {
        writeFileSync(hold + '.' + readFileSync(hold, 'utf8'), '')
      } catch {
        // It was released in between.
      }
      await setTimeout(20, undefined, { signal })
    }
    return { end: answer.ok ? 'completed' : 'harness_crash', detail: String(answer.status), answer: null }
  },
}
`

/** One node over all of its starts. `through`: a program that its commands run in, such as a network namespace's. */
export class StormNode {
  readonly #args: readonly string[]
  readonly #hold: string
  readonly #env: Readonly<Record<string, string>>
  readonly #through: readonly string[]
  readonly #starts: Running[] = []
  #holds = 0

  constructor(
    args: readonly string[],
    hold: string,
    o: { readonly env?: Readonly<Record<string, string>>; readonly through?: readonly string[] } = {},
  ) {
    this.#args = args
    this.#hold = hold
    this.#env = o.env ?? {}
    this.#through = o.through ?? []
  }

  get now(): Running {
    const last = this.#starts.at(-1)
    if (last === undefined) throw new Error('it was never started')
    return last
  }

  start(): void {
    this.#starts.push(started(this.#args, { ...this.#env, STORM_HOLD: this.#hold }, this.#through))
  }

  /** Its agents wait from now on. Resolves with its jobs once an agent does: that of one of them. */
  async hold(): Promise<readonly string[]> {
    this.#holds += 1
    await writeFile(this.#hold, String(this.#holds))
    await until(() => existsSync(`${this.#hold}.${this.#holds}`))
    return this.#open()
  }

  async release(): Promise<void> {
    await rm(this.#hold)
  }

  count(type: string): number {
    return this.#starts.flatMap(({ lines }) => lines).filter((line) => line['type'] === type).length
  }

  get held(): number {
    return this.#open().length
  }

  /** Jobs that it has claimed and said nothing of since. */
  #open(): readonly string[] {
    const { lines } = this.now
    const over = new Set(lines.filter(({ type }) => type !== 'claimed').map(({ job }) => job))
    return lines.flatMap(({ type, job = '' }) => (type === 'claimed' && !over.has(job) ? [job] : []))
  }
}

/** Looks until it is so. */
export async function until(so: () => boolean): Promise<void> {
  while (!so()) await setTimeout(5)
}

/** One request of the control API that must succeed. */
export async function ask({ data, url }: Coordinator, method: string, path: string, body?: object): Promise<string> {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  expect([path, answer.status]).toEqual([path, 200])
  return answer.text()
}

/** Hand-ins by what came of them. */
export async function handIns(here: Coordinator): Promise<Record<string, number>> {
  const text = await ask(here, 'GET', '/metrics')
  const found = text.matchAll(/^paddock_node_hand_ins_total\{result="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...found].map(([, result, count]) => [result, Number(count)]))
}

async function rolloutsOf({ catalogue }: StoreReader): Promise<readonly RolloutView[]> {
  const runs = await catalogue.runs()
  return (await Promise.all(runs.map(({ id }) => catalogue.rollouts({ runId: id })))).flat()
}

/** What is left of a storm. */
export interface Aftermath {
  /** Rollouts at the coordinator. */
  readonly all: readonly RolloutView[]
  /** Rollouts that ended at a node and are not at the coordinator, since another did the job. */
  readonly elsewhere: number
}

/**
 * Every round has settled once with `n` members, no job counts twice, and what ended at a node is at the coordinator, or its job was
 * done by another. `nodes`: data directories.
 */
export async function judgeStorm(
  { data, catalogue = null }: { readonly data: string; readonly catalogue?: string | null },
  { groups: many, n, nodes }: { readonly groups: number; readonly n: number; readonly nodes: readonly string[] },
): Promise<Aftermath> {
  const store = await openReader(data, { catalogue })
  const all = await rolloutsOf(store)
  expect(all.filter(({ end }) => end === null)).toEqual([])
  const completed = all.filter(({ end }) => end === 'completed')
  expect(completed).toHaveLength(many * n)
  expect(new Set(completed.map(({ groupId, slot }) => `${groupId} ${slot}`)).size).toBe(many * n)
  const groups = [...new Set(all.map(({ groupId }) => groupId))]
  expect(groups).toHaveLength(many)
  for (const groupId of groups) {
    const rounds = await store.catalogue.rounds(groupId)
    expect(rounds).toHaveLength(1)
    const members = rounds[0]?.settled?.members ?? []
    const own = new Set(completed.filter((one) => one.groupId === groupId).map(({ id }) => id))
    expect(new Set(members.map(({ rolloutId }) => rolloutId))).toEqual(own)
    expect(members).toHaveLength(n)
  }
  const known = new Set(all.map(({ id }) => id))
  let elsewhere = 0
  for (const node of nodes) {
    const own = await openReader(node)
    for (const one of await rolloutsOf(own)) {
      if (one.end !== 'completed' || known.has(one.id)) continue
      elsewhere += 1
      expect(completed).toContainEqual(expect.objectContaining({ groupId: one.groupId, slot: one.slot }))
    }
    await own.close()
  }
  await store.close()
  expect((await fsck(data, { catalogue })).problems).toEqual([])
  return { all, elsewhere }
}
