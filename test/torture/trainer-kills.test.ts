/** `kill -9` of an asynchronous trainer and of Paddock at seeded moments, judged by the trainer's own journal. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../scripts/free-port.ts'
import { keepSection } from '../../scripts/keep-section.ts'
import { fsck, openStore } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { script, startEngine, type EngineProcess } from '../proxy/support.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

const kills = sized(50, 5)
const steps = kills * 4
const seed = Number(process.env['SEED'] ?? 20_261_123)
const root = fileURLToPath(new URL('../..', import.meta.url))

let engine: EngineProcess
let directory: string
let data: string
let ports: readonly string[]
let paddock: Serving | null = null
let trainer: KilledTrainer | null = null

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  engine = await startEngine('--tokens-per-second', '400')
  await engine.control('/scripts', script('Talk.', [{ say: 'one two three four five' }, { say: 'six seven eight' }]))
  ports = [String(await freePort()), String(await freePort())]
})
afterAll(async () => {
  await trainer?.kill()
  paddock?.kill('SIGKILL')
  await paddock?.ended
  await engine.stop()
})

it(
  `${kills} kills, seed ${seed}: each round settles once, no token is trained twice, nothing that ended is lost`,
  { timeout: kills * 60_000 + 120_000 },
  async () => {
    const random = randomFrom(seed)
    const beganAt = performance.now()
    paddock = await startPaddock()
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    trainer = startTrainer(token, 0)
    const listening = new Listener(token)
    const heard = listening.untilFinished()
    let ofTrainer = 0
    for (let kill = 0; kill < kills; kill += 1) {
      await trainer.steps(Math.floor(random() * 4))
      await new Promise((resolve) => setTimeout(resolve, Math.floor(random() * 200)))
      if (random() < 0.5) {
        await trainer.kill()
        // Every other time a checkpoint is gone on from that is two steps older than the newest.
        ofTrainer += 1
        trainer = startTrainer(token, ofTrainer % 2 === 1 ? 2 : 0)
      } else {
        paddock.kill('SIGKILL')
        await paddock.ended
        paddock = await startPaddock()
      }
    }
    expect(trainer.isOver(), 'more steps are needed for so many kills').toBe(false)
    await trainer.finished
    listening.stop()
    const told = await heard
    // What the listener put together over all kills is what one look from the beginning shows.
    expect(told.map(withoutCursor)).toEqual((await new Listener(token).all()).map(withoutCursor))
    const settled = told.filter(({ type }) => type === 'group_settled').map((one) => `${one.group_id}/${one.round}`)
    expect(new Set(settled).size).toBe(settled.length)
    await paddock.stop()

    const { lineage, attached } = surviving()
    expect(lineage.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, step) => step))
    const tokens = lineage.flatMap(({ rows }) => rows.map(([, call]) => call))
    expect(new Set(tokens).size).toBe(tokens.length)
    const asked = [...new Set(lines<{ group: string }>('asked.jsonl').map(({ group }) => group))]
    const groups = lineage.flatMap((one) => one.groups)
    await using store = await openStore(data)
    const stale = (await store.trainer.versions('kills')).some(({ gone }) => gone)
    const left = asked.filter((group) => !groups.includes(group))
    for (const group of asked) {
      const [round] = await store.catalogue.rounds(group)
      expect(round?.settled?.state, group).toBe('settled')
    }
    // Only what weights sampled that an older checkpoint undid is not trained in the end.
    expect(left.length === 0 || stale).toBe(true)
    const counts = await store.trainer.counts('kills')
    expect(counts).toMatchObject({ running: 0, settledUnclaimed: 0, claimed: 0, failed: 0, stale: left.length })
    expect(counts.done).toBe(groups.length)
    expect((await fsck(data)).problems).toEqual([])
    const figures: readonly (readonly [string, number])[] = [
      ['kills of the trainer', ofTrainer],
      ['of these resumed two steps behind the newest checkpoint', Math.ceil(ofTrainer / 2)],
      ['kills of Paddock', kills - ofTrainer],
      ['incarnations that attached', attached],
      ['steps of the weights that were left', lineage.length],
      ['groups asked for, each settled once', asked.length],
      ['groups stale because their weights were undone', left.length],
      ['calls trained, none twice', tokens.length],
      ['seconds', Math.round((performance.now() - beganAt) / 1000)],
    ]
    const table = figures.map(([what, count]) => `| ${what} | ${count} |`).join('\n')
    console.log(table)
    if (sized(true, false)) {
      const title = 'A trainer and Paddock, killed (`test/torture/trainer-kills.test.ts`)'
      keepSection('bench/TORTURE.md', title, `Seed ${seed}.\n\n| | |\n|---|---|\n${table}`)
    }
  },
)

interface Trained {
  readonly incarnation: number
  readonly step: number
  /** Row, call, and how many tokens of it. */
  readonly rows: readonly (readonly [string, string, number])[]
  readonly groups: readonly string[]
}

/** What the weights have seen that the trainer ended with: steps up to where the next incarnation went on. */
function surviving(): { readonly lineage: readonly Trained[]; readonly attached: number } {
  const trained = lines<Trained>('trained.jsonl')
  const attached = lines<{ attached?: number; step: number | null }>('life.jsonl').filter((one) => 'attached' in one)
  let lineage: Trained[] = []
  for (const { attached: incarnation, step } of attached) {
    lineage = lineage.filter((one) => step !== null && one.step <= step)
    lineage.push(...trained.filter((one) => one.incarnation === incarnation))
  }
  return { lineage, attached: attached.length }
}

function lines<T>(name: string): readonly T[] {
  const text = readFileSync(join(directory, name), 'utf8').split('\n')
  return text.slice(0, -1).map((line) => JSON.parse(line) as T)
}

async function startPaddock(): Promise<Serving> {
  const [inference = '', control = ''] = ports
  return serve(data, ['--port', inference, '--control-port', control, '--engine', engine.url])
}

function controlUrl(): string {
  return `http://127.0.0.1:${ports[1] ?? ''}`
}

interface KilledTrainer {
  /** Resolves when so many more steps are done. Rejects when it ends instead. */
  steps(count: number): Promise<void>
  kill(): Promise<void>
  isOver(): boolean
  readonly finished: Promise<void>
}

function startTrainer(token: string, back: number): KilledTrainer {
  const child: ChildProcess = spawn(
    'python3',
    ['-B', 'test/torture/trainer_kills.py', directory, `${steps}`, `${back}`],
    {
      cwd: root,
      env: {
        ...process.env,
        PYTHONPATH: 'clients/python/src',
        PADDOCK_CONTROL_URL: controlUrl(),
        PADDOCK_CONTROL_TOKEN: token,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  let killed = false
  let over = false
  const exited = once(child, 'exit').then(([code]) => {
    over = true
    if (!killed && code !== 0) throw new Error(`the trainer ended with ${String(code)}: ${said}`)
  })
  let done = 0
  let waiting: { readonly at: number; readonly reached: () => void } | null = null
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', () => {
      done += 1
      if (waiting !== null && done >= waiting.at) waiting.reached()
    })
  }
  return {
    steps: (count) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting = { at: done + count, reached: resolve }
      return count === 0 ? Promise.resolve() : Promise.race([promise, exited])
    },
    kill: async () => {
      killed = true
      child.kill('SIGKILL')
      await exited.catch(() => undefined)
    },
    isOver: () => over,
    finished: exited,
  }
}

interface Told {
  readonly cursor: string
  readonly type: string
  readonly group_id?: string
  readonly round?: number
}

/** Cursors also name the incarnation that was told. */
function withoutCursor(told: Told): Told {
  return { ...told, cursor: '' }
}

/** Follows the run's events by cursor, whatever happens to Paddock. */
class Listener {
  readonly #token: string
  #stopped = false

  constructor(token: string) {
    this.#token = token
  }

  stop(): void {
    this.#stopped = true
  }

  async untilFinished(): Promise<readonly Told[]> {
    const found: Told[] = []
    for (;;) {
      const last = this.#stopped
      const more = await this.#look(found.at(-1)?.cursor ?? null, last ? 0 : 1).catch(() => null)
      if (more !== null) found.push(...more)
      if (last && more?.length === 0) return found
    }
  }

  all(): Promise<readonly Told[]> {
    this.#stopped = true
    return this.untilFinished()
  }

  async #look(after: string | null, waitS: number): Promise<readonly Told[]> {
    const query = new URLSearchParams({ wait_s: `${waitS}`, ...(after === null ? {} : { after }) })
    const answer = await fetch(`${controlUrl()}/rl/v1/runs/kills/events?${query.toString()}`, {
      headers: { authorization: `Bearer ${this.#token}` },
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(text)
    const told = text.split('\n').filter((line) => line !== '')
    return told.map((line) => JSON.parse(line) as Told).filter(({ type }) => type !== 'heartbeat')
  }
}
