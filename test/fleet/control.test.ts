/** The fleet as an operator and a trainer see it: configuration, control routes, commands, metrics. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { chat, paddock, serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine } from '../proxy/support.ts'
import { Engines, orders, words } from './support.ts'

const engines = new Engines()
let directory: string
let serving: Serving
let token: string
let urls: string

beforeAll(async () => {
  directory = tempDir()
  await engines.start(2)
  urls = engines.running.map(({ url }) => url).join()
  serving = await serve(join(directory, 'data'), ['--engine', urls])
  token = (await readFile(join(directory, 'data', 'control-token'), 'utf8')).trim()
})
afterAll(async () => {
  await serving.stop()
  await engines[Symbol.asyncDispose]()
})

const messages = [{ role: 'user', content: 'Count.' }]
const command = (...args: string[]) => paddock(['--data', join(directory, 'data'), '--json', ...args])

/** What the routes below answer, as far as it is looked at. */
interface Said {
  readonly waiting: number
  readonly replicas: readonly { readonly url: string; readonly state: string }[]
}

async function control(method: string, path: string, body?: object): Promise<{ status: number; said: Said }> {
  const answer = await ask(method, path, body)
  return { status: answer.status, said: (await answer.json()) as Said }
}

function ask(method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${serving.ready.control}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

it('shows its replicas on the control API, as metrics and as a command', async () => {
  expect((await chat(serving.ready, { messages })).status).toBe(200)
  const { said } = await control('GET', '/engine')
  expect(said).toMatchObject({ paused: null, waiting: 0, weightVersion: null })
  expect(said.replicas.map((one) => [one.url, one.state])).toEqual(urls.split(',').map((url) => [url, 'serving']))
  const metrics = await (await ask('GET', '/metrics')).text()
  for (const url of urls.split(',')) expect(metrics).toContain(`paddock_replica_serving{replica="${url}"} 1`)
  const status = await command('engine', 'status')
  expect(status.code).toBe(0)
  expect(JSON.parse(status.out)).toMatchObject({ replicas: [{ state: 'serving' }, { state: 'serving' }] })
})

it('pauses and resumes by command, with one clear error in between', async () => {
  expect(JSON.parse((await command('engine', 'pause', '--mode', 'keep')).out)).toMatchObject({ mode: 'keep', kept: 0 })
  const asked = chat(serving.ready, { messages, user: 'waiting' })
  while ((await control('GET', '/engine')).said.waiting === 0);
  const again = await control('POST', '/engine/pause', {})
  expect(again).toMatchObject({ status: 409, said: { error: { code: 'ENGINE_PAUSED' } } })
  const bad = await control('POST', '/engine/pause', { mode: 'hard' })
  expect(bad).toMatchObject({ status: 400, said: { error: { code: 'BODY_INVALID_SHAPE' } } })
  expect((await command('engine', 'resume')).code).toBe(0)
  expect((await asked).status).toBe(200)
})

it('brings new weights to every replica by command', async () => {
  const post = `/update_weights={"update_info":{"names":[]}}`
  const told = await command('engine', 'weights', 'step-1', '--mode', 'abort-resubmit', '--post', post)
  expect(told).toMatchObject({ code: 0 })
  expect(JSON.parse(told.out)).toMatchObject({
    version: 'step-1',
    replicas: [{ weightVersion: 'step-1' }, { weightVersion: 'step-1' }],
  })
  for (const engine of engines.running) expect(await orders(engine)).toContain('/update_weights')
  const refused = await command('engine', 'weights', 'step-2', '--post', '/no_such_route')
  expect(refused.code).toBe(4)
  expect(JSON.parse(refused.err)).toMatchObject({ error: { code: 'WEIGHTS_REFUSED' } })
})

it('gives every replica a LoRA adapter by command and by request, and refuses what an adapter has no use for', async () => {
  const path = join(directory, 'adapter')
  await mkdir(path)
  const told = await command('engine', 'weights', 'step-3', '--adapter', `lora-3=${path}`)
  expect(told).toMatchObject({ code: 0 })
  expect(JSON.parse(told.out)).toMatchObject({
    adapter: { name: 'lora-3', path },
    out: [],
    replicas: [
      { weightVersion: 'step-3', adapter: 'lora-3' },
      { weightVersion: 'step-3', adapter: 'lora-3' },
    ],
  })
  expect((await chat(serving.ready, { messages, user: 'under it' })).status).toBe(200)
  const wrong = await command('engine', 'weights', 'step-4', '--adapter', `lora-4=${path}`, '--mode', 'keep')
  expect(JSON.parse(wrong.err)).toMatchObject({ error: { code: 'BODY_INVALID_SHAPE' } })
  const adapter = { name: 'lora-3', path }
  for (const more of [{ mode: 'drain' }, { cache: 'clear' }, { requests: [{ path: '/x' }] }, { adapter: {} }]) {
    const { status, said } = await control('POST', '/engine/weights', { version: 'step-3', adapter, ...more })
    expect([status, said]).toMatchObject([400, { error: { code: 'BODY_INVALID_SHAPE' } }])
  }
  expect(await control('POST', '/engine/weights', { version: 'step-3', adapter })).toMatchObject({ status: 200 })
  expect(await control('POST', '/engine/weights', { version: 'step-3' })).toMatchObject({ status: 409 })
})

it('says who is missing where nobody serves, and refuses replicas of another model', async () => {
  const nobody = await paddock(['--data', join(directory, 'nobody'), '--json', 'engine', 'status'])
  expect(JSON.parse(nobody.err)).toMatchObject({ error: { code: 'NOT_FOUND' } })
  const stranger = await startEngine('--model', 'scripted-llama')
  try {
    const env = { ENGINE_URL: `${engines.at(0).url},${stranger.url}`, MODEL: '' }
    const checked = await paddock(['--json', 'doctor', '--no-docker'], env)
    expect(checked.out).toContain('differ in model')
    const away = await paddock(['--json', 'doctor', '--no-docker'], {
      ENGINE_URL: `${engines.at(0).url},http://127.0.0.1:1`,
    })
    const findings = JSON.parse(away.out).findings as { about: string; status: string; what: string }[]
    expect(findings.filter(({ about }) => about === 'replica').map(({ status }) => status)).toEqual(['ok', 'warning'])
  } finally {
    await stranger.kill()
  }
})

it('keeps its sessions answered while a replica is away', async () => {
  await engines.at(1).kill()
  for (let index = 0; index < 4; index += 1) {
    const answer = await chat(serving.ready, { messages, user: String(index) })
    expect(await answer.text()).toContain(words)
  }
  await engines.revive(1)
})
