/** A coordinator and four nodes in a storm: nodes are killed, frozen and cut off within a run, one has a wrong clock, and weights change meanwhile. */
import { writeFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { coordinator, nodeArgs, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'
import { ask, handIns, judgeStorm, StormNode, stormHarness, stormRun, until } from './storm.ts'

const seed = Number(process.env['SEED'] ?? 20_261_126)
const names = ['log-forensics', 'git-archaeology', 'broken-build', 'merge-conflict', 'slow-script', 'data-wrangling']
const n = sized(683, 43)
const jobs = names.length * n
const leaseMs = 2000

let directory: string
let engine: EngineProcess
beforeAll(async () => {
  directory = tempDir()
  engine = await startEngine('--first-token-ms', '150')
})
afterEach(stopped)
afterAll(async () => {
  await engine.kill()
})

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

it(
  `${jobs} jobs, 4 nodes, seed ${seed}: every round settles once, no job counts twice, and nothing that ended is lost`,
  { timeout: sized(3_600_000, 900_000) },
  async () => {
    const random = randomFrom(seed)
    const plugin = join(directory, 'one-call.mjs')
    await writeFile(plugin, stormHarness)
    const config = `export default { nodes: { leaseMs: ${leaseMs} }, harnesses: { 'one-call': ${JSON.stringify(plugin)} } }\n`
    const here = await coordinator(directory, 'here', config, '--engine', engine.url)
    const file = ['--config', join(directory, 'here.config.mjs')]
    const wrong = join(directory, 'wrong-clock.mjs')
    await writeFile(wrong, `const now = Date.now\nDate.now = () => now() + 7 * 60_000\n`)
    const relay = await Relay.to(here.url)
    const args = async (name: string, url = here.url) => [...(await nodeArgs({ ...here, url }, name, 8)), ...file]
    const made = async (name: string, url = here.url, env = {}) =>
      new StormNode(await args(name, url), join(directory, `hold-${name}`), { env })
    const killed = await made('killed')
    const frozen = await made('frozen')
    const cut = await made('cut', relay.url)
    const skewed = await made('skewed', here.url, { NODE_OPTIONS: `--import=${wrong}` })
    const nodes = [killed, frozen, cut, skewed]
    for (const node of nodes) node.start()
    await Promise.all(nodes.map(({ now }) => now.said('ready')))
    const handedIn = () => nodes.reduce((sum, node) => sum + node.count('handed_in'), 0)
    /** A moment of the storm: so many jobs are done, about, and the node has some. */
    const moment = async (part: number, node: StormNode): Promise<void> => {
      const due = Math.floor(jobs * (part + random() * 0.05))
      await until(() => handedIn() >= due && node.held > 0)
    }

    const beganAt = performance.now()
    const run = paddock([...stormRun(names, n), ...file, '--data', here.data])

    await moment(0.05, killed)
    await killed.now.end('SIGKILL')
    // The others wait until it is back and has some for its second end, however long that takes.
    const others = [frozen, cut, skewed]
    await Promise.all(others.map((node) => node.hold()))
    killed.start()
    await killed.hold()
    await Promise.all(others.map((node) => node.release()))

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
    const lines = [killed, frozen, skewed].map(({ now }) => now.lines)
    await until(() => lines.flat().some(({ type, job = '' }) => type === 'claimed' && held.includes(job)))
    relay.isCut = false

    await killed.now.end('SIGKILL')
    await killed.release()
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

    const folders = ['killed', 'frozen', 'cut', 'skewed'].map((name) => join(directory, name))
    const { all, elsewhere } = await judgeStorm(here, { groups: names.length, n, nodes: folders })
    const refused = nodes.reduce((sum, node) => sum + node.count('refused'), 0)
    const lostJobs = nodes.reduce((sum, node) => sum + node.count('lost'), 0)
    expect(tally).toMatchObject({ accepted: all.length })
    // A refusal whose answer was lost is asked for again.
    expect(tally['refused']).toBeGreaterThanOrEqual(refused)
    console.log(
      `nodes-storm: ${jobs} jobs in ${tookMs} ms, ${tally['accepted']} accepted, ${tally['repeated']} repeated, ${refused} refused, ${lostJobs} jobs stopped as another's, ${elsewhere} ended twice`,
    )
    expect(refused).toBeGreaterThan(0)
    expect(elsewhere).toBeGreaterThan(0)
  },
)
