/** A run with a limit for missing numbers: it stops with the causes, and can be resumed. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openReader, type RolloutView } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from '../rl/trainer.ts'
import { paddock, serve, type Serving } from './here.ts'

/** Its verdicts are as the tasks say. */
const environment = `export default (kit) => {
  const data = kit.z.strictObject({ reward: kit.z.number().nullable() })
  const verifier = { id: 'v', version: '1', sha256: kit.sha256('v') }
  return kit.defineEnvironment({
    name: 'told', apiVersion: 1, verifierVersion: '1', task: data,
    load: (path) => kit.loadJsonTasks(path, { environment: 'told', data }),
    box: () => ({ image: { kind: 'paddock-base' }, profile: 'user', user: null, workdir: '/workspace', env: {}, network: 'none', agentTimeoutMs: 60000, verifyTimeoutMs: null }),
    tools: () => [],
    collect: async () => ({ items: [] }),
    verify: async ({ task }) => task.data.reward === null
      ? { status: 'unscorable', reward: null, reason: 'nobody can tell', evidence: '', verifier, trust: 'host' }
      : kit.scored(task.data.reward, { verifier, trust: 'host' }),
    scripts: { oracle: async () => ({ name: 'oracle', weight: 1, script: { steps: [{ say: 'Done.' }] } }), cheats: async () => [] },
  })
}`

/** Asks its model once, or meets a fault of the machine. */
const harness = `export default ['asking', 'failing'].map((name) => ({
  name, apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'none',
  run: async ({ baseUrl, apiKey, model, prompt, signal }) => {
    if (name === 'failing') throw new Error('the disk is gone')
    const answer = await fetch(baseUrl + '/chat/completions', {
      method: 'POST', signal, headers: { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] }),
    })
    await answer.text()
    return { end: 'completed', detail: '', answer: '' }
  },
}))`

let directory: string
let common: readonly string[]
beforeAll(async () => {
  directory = tempDir()
  await writeFile(join(directory, 'told.mjs'), environment)
  await writeFile(join(directory, 'harnesses.mjs'), harness)
  await mkdir(join(directory, 'tasks'))
  for (const [name, reward] of Object.entries({ clear: 1, unclear: null })) {
    await writeFile(join(directory, `tasks/${name}.json`), JSON.stringify({ instruction: name, data: { reward } }))
  }
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(
    config,
    `import harnesses from './harnesses.mjs'\nexport default { environments: ['./told.mjs'], harnesses, run: { limits: { agent: 1, boot: 1 } } }`,
  )
  common = ['--config', config]
})

/** All that Paddock did. */
async function rolloutsOf(data: string): Promise<readonly RolloutView[]> {
  await using reader = await openReader(data)
  return (await reader.catalogue.rollouts({})).filter(({ harness }) => harness === 'asking' || harness === 'failing')
}

const run = (data: string, ...more: readonly string[]) => paddock(['run', ...more, ...common, '--data', data])
const begin = (data: string, harness: string, ...more: readonly string[]) =>
  run(data, join(directory, 'tasks'), '--env', 'told', '--harness', harness, ...more)
const ended = async (data: string) => (await rolloutsOf(data)).filter(({ end }) => end !== null).length

describe('paddock run --max-null-share', () => {
  it('stops a run, keeps rollouts under way, stops again when resumed, and continues under a higher limit', async () => {
    const data = join(directory, 'stopped')
    const stopped = await begin(data, 'asking', '--n', '15', '--max-null-share', '0.4')
    expect(stopped).toMatchObject({ code: 3, err: expect.stringMatching(/RUN_NULL_SHARE: .*clear \(15 no_verdict\)/) })
    const rollouts = await rolloutsOf(data)
    // Three jobs are under way at once.
    expect(rollouts.length).toBeGreaterThanOrEqual(20)
    expect(rollouts.length).toBeLessThanOrEqual(23)
    expect(rollouts.every(({ end }) => end === 'completed')).toBe(true)
    const fix = /Fix: .*`paddock (run --resume \S+ --max-null-share 1)`/.exec(stopped.err)?.[1] ?? ''
    const id = fix.split(' ')[2] ?? ''
    const again = await run(data, '--resume', id)
    expect(again).toMatchObject({ code: 3, err: expect.stringContaining('RUN_NULL_SHARE') })
    expect(await rolloutsOf(data)).toHaveLength(rollouts.length)
    expect(await paddock([...fix.split(' '), ...common, '--data', data])).toMatchObject({ code: 0 })
    expect(await ended(data)).toBe(30)
  })

  it('stops a smaller run when all of it has ended, and counts the last of several faults in a slot', async () => {
    const data = join(directory, 'small')
    const { code, err } = await begin(data, 'failing', '--n', '2', '--max-null-share', '0.5')
    expect([code, err]).toEqual([3, expect.stringMatching(/4 of 4 ended .*clear \(2 infra\); unclear \(2 infra\)/)])
    expect(await ended(data)).toBe(12)
    const id = (await rolloutsOf(data))[0]?.runId ?? ''
    expect(await run(data, '--resume', id)).toMatchObject({ code: 3, err: expect.stringContaining('4 of 4 ended') })
  })

  it('holds in the process that owns the data directory', async () => {
    const data = join(directory, 'owned')
    const owner = await serve(data, common)
    try {
      const stopped = await begin(data, 'asking', '--n', '12', '--max-null-share', '0')
      expect(stopped).toMatchObject({ code: 3, err: expect.stringContaining('RUN_NULL_SHARE') })
      expect(await ended(data)).toBeLessThan(24)
      const id = (await rolloutsOf(data))[0]?.runId ?? ''
      expect(await run(data, '--resume', id)).toMatchObject({ code: 3, err: expect.stringContaining('RUN_NULL_SHARE') })
      expect(await run(data, '--resume', id, '--max-null-share', '1')).toMatchObject({ code: 0 })
      expect(await ended(data)).toBe(24)
    } finally {
      await owner.stop()
    }
  })

  it.each(['1.5', '-0.1', 'x', ''])('refuses %j', async (share) => {
    const { code, err } = await begin(join(directory, 'never'), 'asking', '--max-null-share', share)
    expect([code, err]).toEqual([2, expect.stringContaining('from 0 to 1')])
  })
})

describe('max_null_share of a trainer', () => {
  let data: string
  let serving: Serving
  let trainer: Trainer
  const start = async (): Promise<void> => {
    serving = await serve(data, common)
    trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
  }
  const refusal = [409, 'RUN_NULL_SHARE']
  const halted = async (name: string) => (await trainer.ask('GET', `/runs/${name}`))['halted']
  beforeAll(async () => {
    data = join(directory, 'trained')
    await start()
  })
  afterAll(() => serving.stop())

  it('refuses new rollouts of an outside harness until late verdicts have numbers', async () => {
    await trainer.ask('POST', '/runs', { run_id: 'outside', max_null_share: 0.5 })
    await trainer.attach('outside')
    const group = (id: string, n: number) => ({
      groups: [{ group_id: id, task: { name: 'sum', instruction: 'x' }, n }],
    })
    await trainer.ask('POST', '/runs/outside/groups', group('first', 10))
    for (let at = 0; at < 10; at += 1) await trainer.end((await trainer.open('first')).rollout_id, 1)
    await trainer.ask('POST', '/runs/outside/groups', group('second', 20))
    const unclear = { end: 'completed', verdict: { source: 'test', reward: null, reason: 'unclear' } }
    const nulls: string[] = []
    const flying = await trainer.open('second', { idempotency_key: 'flying' })
    // One that waits for its verdict is not counted.
    await trainer.end((await trainer.open('second')).rollout_id, null)
    for (let at = 0; at < 11; at += 1) {
      expect(await halted('outside')).toBeNull()
      const { rollout_id: id } = await trainer.open('second')
      await trainer.ask('POST', `/rollouts/${id}/end`, unclear)
      nulls.push(id)
    }
    const isStopped = async (): Promise<void> => {
      expect(await halted('outside')).toBe('null_share')
      expect(await trainer.refused('POST', '/rollouts', { group_id: 'second' })).toEqual(refusal)
      expect(await trainer.refused('POST', '/runs/outside/groups', group('third', 2))).toEqual(refusal)
    }
    await isStopped()
    await trainer.ask('POST', '/runs/outside/groups', group('second', 20))
    expect(await trainer.open('second', { idempotency_key: 'flying' })).toMatchObject({ rollout_id: flying.rollout_id })
    expect(await trainer.claim('outside')).toMatchObject([{ group_id: 'first' }])
    const claiming = { incarnation: 1, wait_s: 1 }
    const answer = await trainer.send('POST', '/runs/outside/claims', claiming)
    expect(await answer.json()).toMatchObject({
      error: {
        code: 'RUN_NULL_SHARE',
        message: expect.stringContaining('11 of 21'),
        data: { causes: ['11 unscorable'] },
      },
    })
    await serving.stop()
    await start()
    await isStopped()
    await trainer.ask('POST', `/rollouts/${flying.rollout_id}/end`, unclear)
    await isStopped()
    await trainer.ask('POST', `/rollouts/${nulls[0]}/verdict`, { source: 'test', reward: 1 })
    expect(await halted('outside')).toBeNull()
    expect((await trainer.open('second')).rollout_id).not.toBe('')
  })

  it('stops a run whose rollouts Paddock does, and its feed', async () => {
    const own = { tasks: join(directory, 'tasks'), environment: 'told', harness: 'asking', max_null_share: 0.5 }
    const feed = { feed: [{ set: 'train', n: 30 }], capacity: { groups: 1 } }
    await trainer.ask('POST', '/runs', { run_id: 'own', ...own, ...feed })
    await trainer.attach('own')
    // Its only group never settles, so nothing but the refusal ends this.
    let answer: Response
    do answer = await trainer.send('POST', '/runs/own/claims', { incarnation: 1, wait_s: 1 })
    while (answer.ok)
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual(refusal)
    const groups = [{ group_id: 'more', task: 'clear', n: 1 }]
    expect(await trainer.refused('POST', '/runs/own/groups', { groups })).toEqual(refusal)
    const rollouts = await rolloutsOf(data)
    expect(rollouts.length).toBeLessThanOrEqual(23)
    await serving.stop()
    await start()
    expect(await halted('own')).toBe('null_share')
    expect(await trainer.refused('POST', '/runs/own/groups', { groups })).toEqual(refusal)
    expect(await rolloutsOf(data)).toHaveLength(rollouts.length)
  })

  it('must be from 0 to 1', async () => {
    expect(await trainer.refused('POST', '/runs', { run_id: 'wrong', max_null_share: 2 })).toEqual([
      400,
      'BODY_INVALID_SHAPE',
    ])
  })
})
