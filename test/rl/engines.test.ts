/** Replicas that a trainer names while it runs, against a real `paddock serve` that begins without an engine. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Engines, journal, sessionsBy } from '../fleet/support.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { say, talk, task, Trainer } from './trainer.ts'

const engines = new Engines()
let other: EngineProcess
let directory: string
let data: string
let serving: Serving
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await engines.start(3)
  other = await startEngine('--model', 'scripted-llama')
  await start()
  await trainer.ask('POST', '/runs', { run_id: 'run' })
  await trainer.attach('run')
})
afterAll(async () => {
  await serving.stop()
  await engines[Symbol.asyncDispose]()
  await other.stop()
})

async function start(): Promise<void> {
  const config = join(directory, 'paddock.config.mjs')
  const keys = { one: 'a-key-that-is-never-stored', 'of-two': 'another-key-that-is-never-stored' }
  await writeFile(config, `export default { engine: { keys: ${JSON.stringify(keys)} } }\n`, { mode: 0o600 })
  serving = await serve(data, ['--engine', 'none', '--config', config])
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

const at = (...indices: readonly number[]) => indices.map((index) => ({ url: engines.at(index).url }))
const body = (list: readonly object[], incarnation = 1) => ({ incarnation, engines: list })
const put = (list: readonly object[]) => trainer.ask('PUT', '/runs/run/engines', body(list))
const refused = (list: readonly object[], incarnation = 1) =>
  trainer.refused('PUT', '/runs/run/engines', body(list, incarnation))

/** Replicas and their states. */
async function replicas(): Promise<readonly (readonly [string, string])[]> {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const answer = await fetch(`${serving.ready.control}/engine`, { headers: { authorization: `Bearer ${token}` } })
  const said = (await answer.json()) as { replicas: readonly { url: string; state: string }[] }
  return said.replicas.map(({ url, state }) => [url, state] as const)
}

/** A group of one member whose harness has spoken. */
async function played(group: string): Promise<string> {
  await trainer.ask('POST', '/runs/run/groups', { groups: [{ group_id: group, task, n: 1 }] })
  const opened = await trainer.open(group)
  await talk(opened, 1)
  await trainer.end(opened.rollout_id, 1)
  return opened.session_id
}

describe('engines that a trainer names', () => {
  it('are waited for: before the first there are no groups, no sessions and no calls', async () => {
    expect(serving.ready).toMatchObject({ engineControl: null, env: null, rolloutId: null })
    expect(await trainer.ask('POST', '/runs', { run_id: 'later' })).toMatchObject({ capture: 'unknown' })
    const groups = { groups: [{ group_id: 'early', task, n: 1 }] }
    expect(await trainer.refused('POST', '/runs/run/groups', groups)).toEqual([409, 'ENGINE_NONE'])
    const call = await fetch(`${serving.ready.inference}/v1/chat/completions`, { method: 'POST', body: '{}' })
    expect([call.status, await call.text()]).toEqual([409, expect.stringContaining('ENGINE_NONE')])
  })

  it('serve as soon as they are named', async () => {
    const [one] = at(0)
    expect(await put(at(0))).toMatchObject({ engines: [{ url: one?.url, state: 'serving' }] })
    const session = await played('first')
    expect(await sessionsBy(engines.at(0))).toContain(session)
    const [claim] = await trainer.claim('run')
    const { rows } = await trainer.rows('first', claim?.claim_id ?? '')
    expect(rows[0]?.arrays.loss_mask).toContain(1)
  })

  it('are refused by name, and then nothing changes', async () => {
    const before = await replicas()
    const answer = await trainer.send('PUT', '/runs/run/engines', body([...at(0), { url: other.url }]))
    expect(answer.status).toBe(409)
    expect(await answer.json()).toMatchObject({
      error: {
        code: 'ENGINE_DIFFERS',
        message: expect.stringMatching(/model scripted-llama instead of scripted-hermes/),
      },
    })
    expect(await refused([{ url: 'http://127.0.0.1:9' }])).toEqual([502, 'ENGINE_UNREACHABLE'])
    for (const name of ['two', 'constructor', '__proto__'])
      expect(await refused([{ ...at(1)[0], key_ref: name }]), name).toEqual([400, expect.stringMatching(/INVALID/)])
    expect(await refused(at(1), 7)).toEqual([409, 'FENCED'])
    for (const wrong of [[], [...at(0), ...at(0)], [{ ...at(0)[0], role: 'teacher' }], [{ url: 'http://a:b@c' }]])
      expect(await refused(wrong)).toEqual([400, 'BODY_INVALID_SHAPE'])
    // A trainer chooses no file or variable of this machine.
    const own = join(data, 'control-token')
    for (const place of [`file:${own}`, own, 'env:PATH', '$PATH', 'a key itself'])
      expect(await refused([{ ...at(0)[0], key_ref: place }]), place).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await replicas()).toEqual(before)
  })

  it('are of the run that moves the weights', async () => {
    await trainer.attach('later')
    expect(await trainer.refused('PUT', '/runs/later/engines', body(at(1)))).toEqual([409, 'POLICY_OWNED'])
  })

  it('end what they have when they are taken out, and are gone then', async () => {
    await trainer.ask('POST', '/runs/run/groups', { groups: [{ group_id: 'long', task, n: 1 }] })
    const opened = await trainer.open('long')
    const stall = { kind: 'stall', at: 'mid_stream', token: 2, seconds: 600, count: 1 }
    await engines.at(0).fault({ ...stall, match: { session: opened.session_id } })
    const answer = say(opened, [{ role: 'user', content: 'Count.' }])
    while ((await drawing(engines.at(0))) === 0);
    await put(at(1))
    expect(await replicas()).toEqual([
      [engines.at(0).url, 'draining'],
      [engines.at(1).url, 'serving'],
    ])
    await fetch(`${engines.at(0).url}/control/faults`, { method: 'DELETE' })
    expect((await answer).content).not.toBe('')
    expect(await replicas()).toEqual([[engines.at(1).url, 'serving']])
    await trainer.end(opened.rollout_id, 1)
    const lines = (await journal(engines.at(0))).length
    const session = await played('after')
    expect(await sessionsBy(engines.at(1))).toContain(session)
    expect(await journal(engines.at(0))).toHaveLength(lines)
  })

  it('with other weights than the live ones get no calls before an update', async () => {
    await trainer.ask('POST', '/runs/run/policy', {
      incarnation: 1,
      version: 1,
      phase: 'live',
      step: null,
      label: 'w1',
    })
    expect(await put(at(1, 2))).toMatchObject({ engines: [{ state: 'serving', label: 'w1' }, { state: 'stale' }] })
    await trainer.ask('POST', '/runs/run/policy', { incarnation: 1, version: 2, phase: 'live', step: 1, label: 'w2' })
    expect(await put(at(1, 2))).toMatchObject({
      engines: [
        { state: 'serving', label: 'w2' },
        { state: 'serving', label: 'w2' },
      ],
    })
  })

  it('outlive Paddock, and their keys are nowhere in its store', async () => {
    await using byName = await keyed('a-key-that-is-never-stored')
    await using second = await keyed('another-key-that-is-never-stored')
    const list = [
      { url: byName.engine.url, key_ref: 'one' },
      { url: second.engine.url, key_ref: 'of-two' },
    ]
    expect(await refused(list.map(({ url }) => ({ url })))).toEqual([502, 'ENGINE_ERROR'])
    await put(list)
    serving.kill('SIGKILL')
    await serving.ended
    for (const name of await readdir(data, { recursive: true })) {
      const bytes = await readFile(join(data, name)).catch(() => Buffer.alloc(0))
      expect(bytes.includes('key-that-is-never-stored'), name).toBe(false)
    }
    await start()
    expect(serving.ready.env).not.toBe(null)
    expect((await replicas()).map(([url]) => url)).toEqual(list.map(({ url }) => url))
    for (const [index, { engine }] of [byName, second].entries()) {
      await put(list.slice(index, index + 1))
      const session = await played(`again-${index}`)
      expect(await sessionsBy(engine)).toContain(session)
    }
  })

  it('that are all gone are waited for again', async () => {
    const away = await startEngine()
    await put([{ url: away.url }])
    serving.kill('SIGKILL')
    await serving.ended
    await away.kill()
    await start()
    expect(serving.ready.env).toBe(null)
    expect(await replicas()).toEqual([])
    // What they were is remembered.
    expect(await refused([{ url: other.url }])).toEqual([409, 'ENGINE_DIFFERS'])
    await put(at(0))
    const session = await played('new')
    expect(await sessionsBy(engines.at(0))).toContain(session)
  })
})

async function drawing(engine: EngineProcess): Promise<number> {
  return ((await (await fetch(`${engine.url}/control`)).json()) as { drawing: number }).drawing
}

/** An engine that answers to a key only. */
async function keyed(key: string) {
  const engine = await startEngine('--api-key', key)
  return { engine, [Symbol.asyncDispose]: () => engine.kill() }
}
