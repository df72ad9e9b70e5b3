/** Weights that are a LoRA adapter: what runs goes on under what it began with, new calls name the new one, and no harness sees any of it. */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sglangEngine } from '../../src/proxy/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import type { EngineProcess, TestProxy, TestSession } from '../proxy/support.ts'
import { ask, count, Engines, journal, sampledOf, sampling, words } from './support.ts'

const engines = new Engines()
let directory: string

beforeAll(async () => {
  directory = tempDir()
  await engines.start(2)
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

let names = 0
/** A name that nobody had. */
async function adapter(): Promise<{ name: string; path: string }> {
  names += 1
  const name = `lora-${names}`
  await mkdir(join(directory, name))
  return { name, path: join(directory, name) }
}

const order = { mode: 'drain', cache: 'clear', timeoutMs: 300_000, requests: [] } as const

/** It is live, and older ones may go: what whoever moves weights does. */
async function live(
  paddock: TestProxy,
  version: string,
  put?: { readonly name: string; readonly path: string | null },
): ReturnType<TestProxy['proxy']['updateWeights']> {
  const outcome = await paddock.proxy.updateWeights({
    ...order,
    version,
    ...(put === undefined ? {} : { adapter: put }),
  })
  paddock.proxy.dropOldAdapters()
  return outcome
}

async function listed({ url }: EngineProcess): Promise<readonly string[]> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string; parent: string | null }[] }
  return data.flatMap(({ id, parent }) => (parent === null ? [] : [id]))
}

const load = ({ url }: EngineProcess, { name, path }: { name: string; path: string }): Promise<Response> =>
  fetch(`${url}/v1/load_lora_adapter`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ lora_name: name, lora_path: path }),
  })

const told = (paddock: TestProxy, detail: string) =>
  paddock.event((event) => event.type === 'engine' && event.what === 'adapter' && event.detail === detail)

/** Which adapters the engines ran the calls of a session under, by what they wrote down themselves. */
async function ranUnder(session: TestSession): Promise<readonly (string | null)[]> {
  const lines = (await Promise.all(engines.running.map(journal))).flat()
  return lines.filter(({ headers }) => headers['x-session-id'] === session.id).map((line) => line.adapter)
}

const spansOf = async (session: TestSession) =>
  (await session.log()).segments
    .filter(({ origin }) => origin === 'sampled')
    .flatMap(({ policySpans }) =>
      policySpans.map(({ policy, mixing }) => [policy.model, policy.adapter, policy.weightVersion, mixing]),
    )

describe.each(['record', 'splice'] as const)('under strategy %s', (strategy) => {
  it.each([true, false])('an answer ends under the adapter that it began with, stream %s', async (stream) => {
    const [one, two] = [await adapter(), await adapter()]
    await using paddock = await engines.proxy()
    const session = await paddock.open({ policy: { strategy } })
    await ask(session, { stream })
    await live(paddock, 'v1', one)
    await engines.hold(session)
    const asked = ask(session, { stream, user: 'held' })
    await sampling(engines, paddock)
    await live(paddock, 'v2', two)
    const other = await ask(session, { stream, user: 'later' })
    for (const engine of engines.running) expect(await listed(engine)).toEqual(expect.arrayContaining([two.name]))
    const where = await Promise.all(engines.running.map(listed))
    // The replica on which it runs keeps the old one.
    expect(where.filter((all) => all.includes(one.name))).toHaveLength(1)
    await engines.release()
    for (const text of [await asked, other]) {
      expect(text).not.toContain('lora-')
      expect(text).toContain('"model":"scripted-hermes"')
    }
    while ((await Promise.all(engines.running.map(listed))).flat().includes(one.name));
    expect(new Set(await ranUnder(session))).toEqual(new Set([null, one.name, two.name]))
    const spans = await spansOf(session)
    expect(new Set(spans.map(String))).toEqual(
      new Set([
        'scripted-hermes,,0,none',
        `scripted-hermes,${one.name},v1,none`,
        `scripted-hermes,${two.name},v2,none`,
      ]),
    )
    const salts = (await Promise.all(engines.running.map(journal))).flat().map(({ cacheSalt }) => cacheSalt)
    expect(new Set(salts)).toEqual(new Set([null, 'weights-v1', 'weights-v2']))
    await live(paddock, 'own')
    expect(paddock.proxy.engineStatus()).toMatchObject({ adapter: null, weightVersion: 'own' })
    await ask(session, { user: 'own' })
    expect((await spansOf(session)).at(-1)).toEqual(['scripted-hermes', null, 'own', 'none'])
    while ((await Promise.all(engines.running.map(listed))).flat().includes(two.name));
    for (const engine of engines.running) await engine.control('/weights', { updates: [], version: '0' })
  })
})

it('an answer that is gone on with names the adapter of each part', async () => {
  const [one, two] = [await adapter(), await adapter()]
  await using paddock = await engines.proxy()
  const session = await paddock.open({ policy: { strategy: 'splice' } })
  await live(paddock, 'v1', one)
  await engines.hold(session)
  const asked = ask(session, { stream: true, max_tokens: 100 })
  await sampling(engines, paddock)
  await paddock.proxy.pauseEngine({ mode: 'abort-resubmit', cache: 'clear', timeoutMs: 300_000 })
  await live(paddock, 'v2', two)
  await engines.release()
  await paddock.proxy.resumeEngine()
  expect(await asked).not.toContain('lora-')
  expect(await ranUnder(session)).toEqual([one.name, two.name])
  expect((await spansOf(session)).map((span) => span.slice(1))).toEqual([
    [one.name, 'v1', 'none'],
    [two.name, 'v2', 'none'],
  ])
  expect(sampledOf(await session.log()).tokens.length).toBeGreaterThan(10)
})

it('no harness is shown an adapter, nor may it name one', async () => {
  const [one, other] = [await adapter(), await adapter()]
  await using paddock = await engines.proxy()
  const session = await paddock.open()
  await live(paddock, 'v1', one)
  for (const engine of engines.running) await load(engine, other)
  const { data } = await session.client.models.list()
  expect(data.map(({ id }) => id)).toEqual(['scripted-hermes'])
  await expect(session.client.models.retrieve(one.name)).rejects.toMatchObject({ status: 404 })
  for (const model of [one.name, other.name, 'unknown']) {
    const answer = await session.post({ ...count, model })
    expect(answer.status).toBe(404)
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: 'MODEL_UNKNOWN' } })
  }
  const refused = await session.post({ ...count, max_tokens: 0, logit_bias: { 7: 'x' } })
  expect(refused.status).toBe(400)
  expect(await refused.text()).not.toContain(one.name)
  expect(await ranUnder(session)).toEqual([])
  expect(paddock.events.filter(({ type }) => type === 'taint')).toEqual([])
})

it('an adapter belongs to one version: name and path are not used again while it is there', async () => {
  const [one, two] = [await adapter(), await adapter()]
  await using paddock = await engines.proxy()
  await live(paddock, 'v1', one)
  for (const again of [
    one,
    { name: one.name, path: two.path },
    { name: two.name, path: one.path },
    { ...one, path: null },
  ]) {
    await expect(live(paddock, 'v2', again)).rejects.toMatchObject({ code: 'WEIGHTS_REFUSED' })
  }
  await expect(live(paddock, 'v2', { name: 'nobody', path: null })).rejects.toThrow(/has no adapter nobody/)
  await expect(live(paddock, 'v2', { name: 'nobody', path: '/nowhere' })).rejects.toThrow(/404: .*Loading lora nobody/)
  expect(paddock.proxy.engineStatus()).toMatchObject({ adapter: one.name, weightVersion: 'v1' })
  expect(await live(paddock, 'v1', one)).toMatchObject({ version: 'v1', out: [] })
  for (const engine of engines.running) await load(engine, two)
  expect(await live(paddock, 'v2', { name: two.name, path: null })).toMatchObject({
    replicas: [
      { adapter: two.name, weightVersion: 'v2', told: true },
      { adapter: two.name, weightVersion: 'v2', told: true },
    ],
  })
})

it('a server that was started anew gets its adapter before it answers, whether or not anybody saw it go', async () => {
  const one = await adapter()
  await using paddock = await engines.proxy({ replicas: [], fleet: { healthMs: 600_000 } })
  const session = await paddock.open()
  await live(paddock, 'v1', one)
  await ask(session)
  await engines.at(0).kill()
  await engines.revive(0)
  expect(await listed(engines.at(0))).toEqual([])
  expect(await ask(session, { user: 'again' })).toContain(words)
  expect(await listed(engines.at(0))).toEqual([one.name])
  expect((await spansOf(session)).map((span) => span.slice(1))).toEqual([
    [one.name, 'v1', 'none'],
    [one.name, 'v1', 'none'],
  ])
  // Its files are gone when it comes back the next time: nothing is sampled by what is below it.
  await rm(one.path, { recursive: true })
  await engines.at(0).kill()
  await engines.revive(0)
  const answer = await session.post({ ...count, user: 'without' })
  expect(answer.status).toBe(502)
  expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: 'WEIGHTS_REFUSED' } })
  await paddock.event(({ type }) => type === 'taint')
  expect(await journal(engines.at(0))).toEqual([])
})

it('a replica that does not get it is out by name, and is in again when it has it', async () => {
  await using some = await new Engines().start(2)
  await some.at(1).kill()
  await some.revive(1, '--no-lora')
  const one = await adapter()
  await using paddock = await some.proxy()
  const outcome = await live(paddock, 'v1', one)
  expect(outcome.out).toMatchObject([{ url: some.at(1).url, why: expect.stringMatching(/does not take .*404/) }])
  expect(paddock.proxy.engineStatus().replicas.map(({ state, adapter: has }) => [state, has])).toEqual([
    ['serving', one.name],
    ['stale', null],
  ])
  const sessions = await Promise.all(Array.from({ length: 4 }, () => paddock.open()))
  for (const session of sessions) await ask(session)
  expect((await journal(some.at(0))).map((line) => line.adapter)).toEqual(sessions.map(() => one.name))
  expect(await journal(some.at(1))).toEqual([])
  await some.at(1).kill()
  await some.revive(1)
  await paddock.event(
    (event) => event.type === 'engine' && event.what === 'readmitted' && event.replica === some.at(1).url,
  )
  expect(await listed(some.at(1))).toEqual([one.name])
})

it('a process that goes on with it names it, and gives it to those that are without', async () => {
  const one = await adapter()
  await using paddock = await engines.proxy()
  await load(engines.at(0), one)
  await paddock.proxy.believeWeights({ version: 'v1', adapter: one })
  for (const engine of engines.running) expect(await listed(engine)).toContain(one.name)
  const session = await paddock.open()
  await ask(session)
  expect((await spansOf(session)).map((span) => span.slice(1))).toEqual([[one.name, 'v1', 'none']])
  expect(await paddock.proxy.engineWeights()).toMatchObject([
    { weightVersion: 'v1', told: true },
    { weightVersion: 'v1', told: true },
  ])
})

it('on SGLang the adapter has a member of its own', async () => {
  await using sglang = await new Engines(['--wire', 'sglang'], (url) => sglangEngine({ url })).start(1)
  const [one, two] = [await adapter(), await adapter()]
  await using paddock = await sglang.proxy()
  const session = await paddock.open()
  await live(paddock, 'v1', one)
  const text = await ask(session)
  await live(paddock, 'v2', two)
  await told(paddock, `unloaded ${one.name}`)
  await ask(session, { user: 'later', stream: true })
  expect(text).not.toContain('lora-')
  expect((await journal(sglang.at(0))).map((line) => line.adapter)).toEqual([one.name, two.name])
  expect((await spansOf(session)).map((span) => span.slice(1))).toEqual([
    [one.name, 'v1', 'none'],
    [two.name, 'v2', 'none'],
  ])
  const named = await session.post({ ...count, model: `scripted-hermes:${two.name}` })
  expect(named.status).toBe(404)
})

it('a version is one adapter, and never the name of what is below', async () => {
  const [one, two] = [await adapter(), await adapter()]
  await using paddock = await engines.proxy()
  await live(paddock, 'own')
  await live(paddock, 'v1', one)
  for (const put of [two, undefined]) {
    await expect(live(paddock, 'v1', put)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
  }
  await expect(live(paddock, 'own', two)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
  await live(paddock, 'v1', one)
  await using later = await engines.proxy()
  const below = { code: 'WEIGHTS_REFUSED', message: expect.stringContaining('own already') }
  await expect(live(later, 'own', two)).rejects.toMatchObject(below)
})
