/** Parts of a reward that an environment knows while a rollout goes on, as its trainer and a watcher are told of them with each turn. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { followLive } from './follow-live.ts'
import { type Json, Trainer } from './trainer.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

/** Climbs; only from the second step on does it know how high, and nobody may climb for ever. */
const environment = `export default (kit) => {
  const data = kit.z.strictObject({})
  const climb = kit.defineTool({
    name: 'climb', description: 'Climbs.', input: kit.z.object({ to: kit.z.number() }),
    run: async (_, { to }) => ({ status: 'ok', text: 'higher', ...(to < 2 ? {} : { rewards: { height: to, style: 0.5, lost: Number.NaN } }) }),
  })
  const steps = [1, 2, 3].map((to) => ({ tool: 'climb', args: { to } }))
  return kit.defineEnvironment({
    name: 'climb', apiVersion: 1, verifierVersion: '1', task: data,
    load: (path) => kit.loadJsonTasks(path, { environment: 'climb', data }),
    box: () => ({ image: { kind: 'paddock-base' }, profile: 'user', user: null, workdir: '/workspace', env: {}, network: 'none', agentTimeoutMs: 60000, verifyTimeoutMs: null }),
    tools: () => [climb],
    collect: async () => ({ items: [] }),
    verify: async () => kit.scored(1, { verifier: { id: 'climb', version: '1', sha256: kit.sha256('climb') }, trust: 'host' }),
    scripts: { oracle: async () => ({ name: 'oracle', weight: 1, script: { steps: [...steps, { say: 'Done.' }] } }), cheats: async () => [] },
  })
}`

let directory: string
let data: string
let serving: Serving
let trainer: Trainer
const live: Json[] = []

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await writeFile(join(directory, 'climb.mjs'), environment)
  await mkdir(join(directory, 'tasks'))
  await writeFile(join(directory, 'tasks/up.json'), JSON.stringify({ instruction: 'Climb.', data: {} }))
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, `export default { environments: ['./climb.mjs'] }`)
  serving = await serve(data, ['--config', config])
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  trainer = new Trainer(serving, token)
  await followLive(`${serving.ready.control}/events`, token, (kind, said) => {
    if (kind === 'turn') live.push(said as Json)
  })
})
afterAll(async () => {
  await serving.stop()
})

it.runIf(await requireDocker())(
  'come with the turns behind them, the last of a name, and are absent where none is known',
  async () => {
    const about = { environment: 'climb', tasks: join(directory, 'tasks'), turn_events: true }
    await trainer.ask('POST', '/runs', { run_id: 'r', ...about })
    await trainer.attach('r')
    await trainer.ask('POST', '/runs/r/groups', { groups: [{ group_id: 'g', task: 'up', n: 1 }] })
    const [claim] = await trainer.claim('r', { wait_s: 60 })
    expect(claim).toMatchObject({ group_id: 'g', settled: { usable: 1 } })
    const text = await (await trainer.send('GET', '/runs/r/events')).text()
    const turns = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
      .filter(({ type }) => type === 'turn')
    const known = [undefined, undefined, { height: 2, style: 0.5 }, { height: 3, style: 0.5 }]
    expect(turns.map(({ rewards }) => rewards)).toEqual(known)
    expect(turns.map((turn) => 'rewards' in turn)).toEqual([false, false, true, true])
    expect(live.map(({ rewards }) => rewards)).toEqual(known)
    await using reader = await openReader(data)
    const stored = await reader.recorder.events({ rolloutId: String(turns[0]?.['rollout_id']) })
    const parts = stored.flatMap((event) => (event.kind === 'reward' ? [event.parts] : []))
    expect(parts).toEqual(known.slice(2))
    // What is known so far is no verdict.
    const { rows } = await trainer.rows('g', claim?.claim_id ?? null)
    expect(rows.map(({ reward }) => reward)).toEqual([1])
  },
)
