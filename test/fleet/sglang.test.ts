/** The same on SGLang's wire: its pause, abort and version routes, its spans. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sglangEngine } from '../../src/proxy/index.ts'
import { script } from '../proxy/support.ts'
import { ask, Engines, expectLegs, journal, orders, sampledOf, sampling, words } from './support.ts'

const chat = new Engines(['--wire', 'sglang'], (url) => sglangEngine({ url }))
/** Chat takes no ids: `/generate` and the parser routes. */
const parse = new Engines(['--wire', 'sglang', '--no-chat-ids'], (url) => sglangEngine({ url }))
const long = `${words}, and once more: ${words}.`
const talk = { model: 'scripted-hermes', messages: [{ role: 'user' as const, content: 'Talk.' }] }
const weights = { cache: 'clear', timeoutMs: 300_000, requests: [] } as const

beforeAll(async () => {
  await Promise.all([chat.start(1), parse.start(2)])
  for (const engine of [...chat.running, ...parse.running])
    await engine.control('/scripts', script('Talk.', [{ say: long }]))
})
afterAll(() => Promise.all([chat[Symbol.asyncDispose](), parse[Symbol.asyncDispose]()]))

it('a frozen answer has the spans that the chat route tells', async () => {
  await using paddock = await chat.proxy()
  const session = await paddock.open()
  await paddock.proxy.updateWeights({ ...weights, mode: 'drain', version: 's1' })
  await chat.hold(session)
  const asked = ask(session, talk)
  await sampling(chat, paddock)
  await paddock.proxy.updateWeights({ ...weights, mode: 'keep', version: 's2' })
  await chat.release()
  expect(JSON.parse(await asked).choices[0].message.content).toBe(long)
  const log = await session.log()
  await expectLegs(chat, log, 1)
  expect(sampledOf(log).policySpans.map(({ policy, mixing }) => [policy.weightVersion, mixing])).toEqual([
    ['s1', 'none'],
    ['s2', 'none'],
  ])
  expect(log.calls[0]?.commit).toMatchObject({ weightVersionBefore: 's1', weightVersionAfter: 's2' })
  const asks = await orders(chat.at(0))
  expect(asks).toEqual(expect.arrayContaining(['/pause_generation', '/flush_cache', '/continue_generation']))
  expect((await journal(chat.at(0))).map(({ cacheSalt }) => cacheSalt)).toEqual(['weights-s1'])
})

it('an interrupted answer of `/generate` goes on from its ids', async () => {
  await using paddock = await parse.proxy()
  const session = await paddock.open({ policy: { strategy: 'splice' } })
  await paddock.proxy.updateWeights({ ...weights, mode: 'drain', version: 's3' })
  await parse.hold(session)
  const asked = ask(session, { ...talk, max_tokens: 200 })
  await sampling(parse, paddock)
  const outcome = await paddock.proxy.updateWeights({ ...weights, mode: 'abort-resubmit', version: 's4' })
  expect(outcome).toMatchObject({ interrupted: 1 })
  expect(JSON.parse(await asked).choices[0].message.content).toBe(long)
  await expectLegs(parse, await session.log(), 2)
})
