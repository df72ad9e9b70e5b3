/** Real commands with their catalogue in PostgreSQL: two Paddocks on one database, and a run that goes on after a kill. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPostgresCatalogue, openReader, type RolloutView } from '../../src/trajectory/index.ts'
import { type Ended, launcher, paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from '../rl/trainer.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

const password = 'hidden-word'
let server: PostgresServer
let directory: string
const servings: Serving[] = []
beforeAll(async () => {
  server = await startPostgres()
  directory = tempDir()
})
afterAll(async () => {
  await Promise.all(servings.map((one) => one.stop()))
  await server.stop()
})

/** A fresh database, with a password in its URL that nothing may tell. */
const database = async (): Promise<string> => (await server.database()).replace('paddock@', `paddock:${password}@`)

async function trainerOf(serving: Serving, data: string): Promise<Trainer> {
  return new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

/** Every file of a folder, whole. */
async function contents(folder: string): Promise<string> {
  const texts: string[] = []
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name)
    if ((await stat(path)).isFile()) texts.push(await readFile(path, 'latin1'))
  }
  return texts.join('\n')
}

it('two Paddocks on one catalogue see all runs, have the rows of their own, and leave the other alone', async () => {
  const env = { PADDOCK_CATALOGUE: await database() }
  const [dataA, dataB] = [join(directory, 'a'), join(directory, 'b')]
  const said: Ended[] = []
  const command = async (data: string, ...args: string[]): Promise<Ended> => {
    const ended = await paddock([...args, '--data', data], env)
    said.push(ended)
    return ended
  }
  const start = async (data: string): Promise<Serving> => {
    const serving = await serve(data, [], env)
    servings.push(serving)
    return serving
  }
  const [a, b] = [await start(dataA), await start(dataB)]
  const [trainerA, trainerB] = [await trainerOf(a, dataA), await trainerOf(b, dataB)]
  for (const [trainer, run] of [
    [trainerA, 'run-a'],
    [trainerB, 'run-b'],
  ] as const) {
    await trainer.ask('POST', '/runs', { run_id: run })
    await trainer.attach(run)
    await trainer.settle(run, `${run}-g`, [1, 0])
  }
  // A rollout of A goes on over the end and the next start of B.
  await trainerA.ask('POST', '/runs/run-a/groups', {
    groups: [{ group_id: 'open', task: { name: 'sum', instruction: 'Add 2 and 2.' }, n: 1 }],
  })
  const open = await trainerA.open('open')

  const [claim] = await trainerA.claim('run-a')
  const round = await trainerA.rows('run-a-g', claim?.claim_id ?? '')
  expect(round.rows.length).toBeGreaterThan(0)
  expect(await trainerB.refused('GET', '/groups/run-a-g/rounds/0/rows')).toEqual([409, 'RECORDED_ELSEWHERE'])
  expect(await trainerB.refused('POST', '/runs/run-a/attach', { resume_step: null })).toEqual([
    409,
    'RECORDED_ELSEWHERE',
  ])
  const more = { groups: [{ group_id: 'x', task: { name: 'sum', instruction: 'Add 2 and 2.' }, n: 1 }] }
  expect(await trainerB.refused('POST', '/runs/run-a/groups', more)).toEqual([409, 'RECORDED_ELSEWHERE'])
  const ended = { end: 'completed', verdict: { source: 'test', reward: 0 } }
  expect(await trainerB.refused('POST', `/rollouts/${open.rollout_id}/end`, ended)).toEqual([409, 'RECORDED_ELSEWHERE'])

  said.push(await b.stop())
  const again = await start(dataB)
  expect(await trainerA.end(open.rollout_id, 1)).toMatchObject({ end: 'completed' })
  said.push(await a.stop(), await again.stop())

  for (const data of [dataA, dataB]) {
    const { out } = await command(data, 'list', '--json')
    expect(out).toContain('run-a')
    expect(out).toContain('run-b')
    const checked = await command(data, 'fsck')
    expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('no problems')])
  }
  const [rolloutA] = round.members.map(({ rollout_id }) => rollout_id)
  expect(await command(dataA, 'show', rolloutA ?? '')).toMatchObject({ code: 0 })
  const shown = await command(dataB, 'show', rolloutA ?? '')
  expect(shown.code).not.toBe(0)
  expect(shown.err).toContain('RECORDED_ELSEWHERE')
  expect(shown.err).toContain(dataA)
  const exported = (data: string) =>
    command(
      data,
      'export',
      '--rollout',
      rolloutA ?? '',
      '--format',
      'jsonl',
      '--out',
      join(directory, `out-${data.slice(-1)}`),
    )
  expect(await exported(dataA)).toMatchObject({ code: 0 })
  expect((await exported(dataB)).err).toContain('RECORDED_ELSEWHERE')

  // Without its catalogue, or with another, a directory is not begun anew.
  const none = await paddock(['list', '--data', dataA])
  expect(none.err).toContain('CATALOGUE_OTHER')
  const other = await server.database()
  await (await openPostgresCatalogue({ url: other })).close()
  expect((await paddock(['list', '--data', dataA, '--catalogue', other])).err).toContain('CATALOGUE_OTHER')

  const doctor = await command(dataA, 'doctor', '--json')
  expect(doctor.out).toContain('PostgreSQL 1')
  for (const { out, err } of [...said, none, shown]) expect(out + err).not.toContain(password)
  expect(await contents(directory)).not.toContain(password)
})

it('readiness says that the catalogue is away', async () => {
  const own = await startPostgres()
  const serving = await serve(join(directory, 'away'), [], { PADDOCK_CATALOGUE: await own.database() })
  const ready = async (): Promise<unknown> => (await fetch(`${serving.ready.control}/readyz`)).json()
  expect(await ready()).toMatchObject({ status: 'ready', store: 'open' })
  await own.stop()
  await expect.poll(ready).toMatchObject({ status: 'not_ready', store: 'closed' })
  serving.kill('SIGKILL')
  await serving.ended
})

it('a run that was killed goes on', async () => {
  const env = { PADDOCK_CATALOGUE: await database() }
  const data = join(directory, 'killed')
  const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
  const held = join(directory, 'held')
  const rolloutRoom = new URL('../../src/rollout/index.ts', import.meta.url)
  await writeFile(held, '')
  // The second agent waits while `held` is there.
  await writeFile(
    join(directory, 'patient.mjs'),
    `import { existsSync } from 'node:fs'
    import { setTimeout as wait } from 'node:timers/promises'
    import { referenceAgent } from ${JSON.stringify(rolloutRoom.href)}
    const agent = referenceAgent()
    let begun = 0
    export default {
      ...agent,
      name: 'patient',
      async run(context) {
        begun += 1
        while (begun > 1 && existsSync(${JSON.stringify(held)})) await wait(20, undefined, { signal: context.signal })
        return agent.run(context)
      },
    }\n`,
  )
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, "export default { run: { limits: { agent: 1 } }, harnesses: ['./patient.mjs'] }\n")
  const rollouts = async (): Promise<readonly RolloutView[]> => {
    try {
      await using reader = await openReader(data, { catalogue: env.PADDOCK_CATALOGUE })
      const [run] = await reader.catalogue.runs(1)
      return run === undefined ? [] : await reader.catalogue.rollouts({ runId: run.id })
    } catch {
      // The process that makes it is still at that.
      return []
    }
  }
  const common = ['--data', data, '--config', config, '--json']
  const child = spawn(launcher, ['run', task, '--n', '2', '--harness', 'patient', ...common], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'close')
  child.stdout.resume()
  while (!(await rollouts()).some(({ end }) => end === 'completed')) expect(child.exitCode).toBeNull()
  child.kill('SIGKILL')
  await gone
  await rm(held)
  const before = await rollouts()
  const resumed = await paddock(['run', '--resume', before[0]?.runId ?? '', ...common], env)
  expect([resumed.code, resumed.err]).toEqual([0, expect.any(String)])
  const after = (await rollouts()).filter(({ end }) => end === 'completed')
  expect(after.map(({ slot }) => slot).toSorted((x, y) => x - y)).toEqual([0, 1])
  expect(after.map(({ verdicts }) => verdicts.length)).toEqual([1, 1])
  for (const one of before.filter(({ end }) => end === 'completed')) expect(after).toContainEqual(one)
})
