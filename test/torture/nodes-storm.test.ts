/** A coordinator and four nodes in a storm: nodes are killed, frozen and cut off within a run, one has a wrong clock, and weights change meanwhile. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { fsck, openReader, type RolloutView, type StoreReader } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { type Coordinator, coordinator, nodeArgs, type Running, started, stopped } from '../cli/running-nodes.ts'
import { startEngine, type TestEngine } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

const seed = Number(process.env['SEED'] ?? 20_261_126)
const names = ['log-forensics', 'git-archaeology', 'broken-build', 'merge-conflict', 'slow-script', 'data-wrangling']
const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
const n = sized(683, 43)
const jobs = names.length * n
const leaseMs = 2000

let directory: string
let engine: TestEngine
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-nodes-storm-'))
  engine = await startEngine('--first-token-ms', '150')
})
afterEach(stopped)
afterAll(async () => {
  await engine.kill()
  await rm(directory, { recursive: true, force: true })
})

/** One call, in the node's own process and without a box: what is tested is what becomes of jobs. It waits while its node is told to hold. */
const harness = `import { existsSync } from 'node:fs'
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
    while (existsSync(process.env.STORM_HOLD)) await setTimeout(20, undefined, { signal })
    return { end: answer.ok ? 'completed' : 'harness_crash', detail: String(answer.status), answer: null }
  },
}
`

/** A network between a node and its coordinator that can be cut. */
class Relay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  private constructor(server: Server) {
    this.#server = server
  }

  static async to(url: string): Promise<Relay> {
    const { hostname, port } = new URL(url)
    const server = createServer()
    const relay = new Relay(server)
    server.on('connection', (from) => {
      if (relay.#isCut) return void from.destroy()
      const there = connect(Number(port), hostname)
      for (const [one, other] of [
        [from, there],
        [there, from],
      ] as const) {
        relay.#sockets.add(one)
        one.on('error', () => other.destroy())
        one.on('close', () => (relay.#sockets.delete(one), other.destroy()))
        one.pipe(other)
      }
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return relay
  }

  get url(): string {
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  }

  set isCut(cut: boolean) {
    this.#isCut = cut
    if (cut) for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.isCut = true
    this.#server.close()
  }
}

/** One node over all of its starts. */
class Node {
  readonly #args: readonly string[]
  readonly #hold: string
  readonly #env: Readonly<Record<string, string>>
  readonly #starts: Running[] = []

  constructor(args: readonly string[], hold: string, env: Readonly<Record<string, string>> = {}) {
    this.#args = args
    this.#hold = hold
    this.#env = env
  }

  get now(): Running {
    const last = this.#starts.at(-1)
    if (last === undefined) throw new Error('it was never started')
    return last
  }

  start(): void {
    this.#starts.push(started(this.#args, { ...this.#env, STORM_HOLD: this.#hold }))
  }

  /** Its agents wait from now on. Resolves with jobs whose agents surely do. */
  async hold(): Promise<readonly string[]> {
    const { lines } = this.now
    await writeFile(this.#hold, '')
    const before = lines.length
    const jobs = () => lines.slice(before).flatMap(({ type, job = '' }) => (type === 'claimed' ? [job] : []))
    await until(() => jobs().length > 0)
    return jobs()
  }

  async release(): Promise<void> {
    await rm(this.#hold)
  }

  count(type: string): number {
    return this.#starts.flatMap(({ lines }) => lines).filter((line) => line['type'] === type).length
  }

  /** Jobs that it has claimed and said nothing of since. */
  get held(): number {
    const { lines } = this.now
    const over = new Set(lines.filter(({ type }) => type !== 'claimed').map(({ job }) => job))
    return lines.filter(({ type, job }) => type === 'claimed' && !over.has(job)).length
  }
}

async function until(so: () => boolean): Promise<void> {
  while (!so()) await setTimeout(5)
}

async function ask({ data, url }: Coordinator, method: string, path: string, body?: object): Promise<string> {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  expect([path, answer.status]).toEqual([path, 200])
  return answer.text()
}

/** Hand-ins by what came of them. */
async function handIns(here: Coordinator): Promise<Record<string, number>> {
  const text = await ask(here, 'GET', '/metrics')
  const found = text.matchAll(/^paddock_node_hand_ins_total\{result="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...found].map(([, result, count]) => [result, Number(count)]))
}

async function rolloutsOf({ catalogue }: StoreReader): Promise<readonly RolloutView[]> {
  const runs = await catalogue.runs()
  return (await Promise.all(runs.map(({ id }) => catalogue.rollouts({ runId: id })))).flat()
}

it(
  `${jobs} jobs, 4 nodes, seed ${seed}: every round settles once, no job counts twice, and nothing that ended is lost`,
  { timeout: sized(3_600_000, 900_000) },
  async () => {
    const random = randomFrom(seed)
    const plugin = join(directory, 'one-call.mjs')
    await writeFile(plugin, harness)
    const config = `export default { nodes: { leaseMs: ${leaseMs} }, harnesses: { 'one-call': ${JSON.stringify(plugin)} } }\n`
    const here = await coordinator(directory, 'here', config, '--engine', engine.url)
    const file = ['--config', join(directory, 'here.config.mjs')]
    const wrong = join(directory, 'wrong-clock.mjs')
    await writeFile(wrong, `const now = Date.now\nDate.now = () => now() + 7 * 60_000\n`)
    const relay = await Relay.to(here.url)
    const args = async (name: string, url = here.url) => [...(await nodeArgs({ ...here, url }, name, 8)), ...file]
    const made = async (name: string, url = here.url, env = {}) =>
      new Node(await args(name, url), join(directory, `hold-${name}`), env)
    const killed = await made('killed')
    const frozen = await made('frozen')
    const cut = await made('cut', relay.url)
    const skewed = await made('skewed', here.url, { NODE_OPTIONS: `--import=${wrong}` })
    const nodes = [killed, frozen, cut, skewed]
    for (const node of nodes) node.start()
    await Promise.all(nodes.map(({ now }) => now.said('ready')))
    const handedIn = () => nodes.reduce((sum, node) => sum + node.count('handed_in'), 0)
    /** A moment of the storm: so many jobs are done, about, and the node has some. */
    const moment = async (part: number, node: Node): Promise<void> => {
      const due = Math.floor(jobs * (part + random() * 0.05))
      await until(() => handedIn() >= due && node.held > 0)
    }

    const beganAt = performance.now()
    const only = names.flatMap((name) => ['--task', name])
    const asked = ['run', tasks, ...only, '--n', String(n), '--min-usable', '0', '--harness', 'one-call', ...file]
    const run = paddock([...asked, '--json', '--data', here.data])

    await moment(0.05, killed)
    await killed.now.end('SIGKILL')
    killed.start()

    await moment(0.2, frozen)
    await frozen.hold()
    frozen.now.child.kill('SIGSTOP')
    const { nodes: told } = JSON.parse(await ask(here, 'POST', '/engine/weights', { version: 'step-1' }))
    expect(told.passed).toContainEqual({ node: 'frozen', why: 'lapsed' })
    frozen.now.child.kill('SIGCONT')
    await frozen.release()

    await moment(0.45, cut)
    const held = await cut.hold()
    relay.isCut = true
    // What ends behind the cut is handed in when others have it.
    await cut.release()
    const others = [killed, frozen, skewed].map(({ now }) => now.lines)
    await until(() => others.flat().some(({ type, job = '' }) => type === 'claimed' && held.includes(job)))
    relay.isCut = false

    await moment(0.65, killed)
    await killed.now.end('SIGKILL')
    killed.start()

    const ended = await run
    const tookMs = Math.round(performance.now() - beganAt)
    expect([ended.code, ended.err]).toEqual([0, ''])
    // Who was away says what became of what it had, before it is asked to stop.
    await Promise.all(nodes.map(({ now }) => now.said('ready')))
    await until(() => nodes.every(({ held }) => held === 0))
    const tally = await handIns(here)
    await stopped()
    relay.close()

    const store = await openReader(here.data)
    const all = await rolloutsOf(store)
    expect(all.filter(({ end }) => end === null)).toEqual([])
    const completed = all.filter(({ end }) => end === 'completed')
    expect(completed).toHaveLength(jobs)
    expect(new Set(completed.map(({ groupId, slot }) => `${groupId} ${slot}`)).size).toBe(jobs)
    const groups = [...new Set(all.map(({ groupId }) => groupId))]
    expect(groups).toHaveLength(names.length)
    for (const groupId of groups) {
      const rounds = await store.catalogue.rounds(groupId)
      expect(rounds).toHaveLength(1)
      const members = rounds[0]?.settled?.members ?? []
      const own = new Set(completed.filter((one) => one.groupId === groupId).map(({ id }) => id))
      expect(new Set(members.map(({ rolloutId }) => rolloutId))).toEqual(own)
      expect(members).toHaveLength(n)
    }
    // What ended at a node is here, or its job was another's by then, whose rollout is.
    const known = new Set(all.map(({ id }) => id))
    let elsewhere = 0
    for (const name of ['killed', 'frozen', 'cut', 'skewed']) {
      const own = await openReader(join(directory, name))
      for (const one of await rolloutsOf(own)) {
        if (one.end !== 'completed' || known.has(one.id)) continue
        elsewhere += 1
        expect(completed).toContainEqual(expect.objectContaining({ groupId: one.groupId, slot: one.slot }))
      }
      await own.close()
    }
    await store.close()
    const refused = nodes.reduce((sum, node) => sum + node.count('refused'), 0)
    const lostJobs = nodes.reduce((sum, node) => sum + node.count('lost'), 0)
    expect(tally).toMatchObject({ accepted: all.length })
    // A refusal whose answer was lost is asked for again.
    expect(tally['refused']).toBeGreaterThanOrEqual(refused)
    expect((await fsck(here.data)).problems).toEqual([])
    console.log(
      `nodes-storm: ${jobs} jobs in ${tookMs} ms, ${tally['accepted']} accepted, ${tally['repeated']} repeated, ${refused} refused, ${lostJobs} jobs stopped as another's, ${elsewhere} ended twice`,
    )
    expect(refused).toBeGreaterThan(0)
    expect(elsewhere).toBeGreaterThan(0)
  },
)
