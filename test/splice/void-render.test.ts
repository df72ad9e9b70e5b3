/** Engines whose render cannot be spliced behind: found out before the first spliced call, and said. */
import { describe, expect, it } from 'vitest'
import { paddock } from '../cli/here.ts'
import { startProxy } from '../proxy/support.ts'
import { converse, expectFaithful, findings, profiles, startScripted } from './support.ts'

const both = ['Tidy the höuse.', 'And now the cellar.'] as const
const model = 'scripted-hermes'

describe.each([
  ['opens-turns', 'opens a turn behind an answer, asked not to'],
  ['drops-answers', 'does not go on as a render of the answer alone ends'],
])('a render that %s', (habit, why) => {
  it('is recorded under auto, as an event and each of its calls say', async () => {
    const engine = await startScripted(model, '--bad-render', habit)
    await using paddock = await startProxy(engine.url)
    for (let at = 0; at < 2; at += 1) {
      const session = await paddock.open({ policy: { strategy: 'auto' } })
      await converse(session, both, { model })
      const log = await session.log()
      expect(log.calls.length).toBeGreaterThan(4)
      expect(new Set(log.calls.map((call) => call.intent.strategy))).toEqual(new Set(['record']))
      expect(new Set(findings(log))).toEqual(new Set(['splice_void']))
      await expectFaithful(log, engine)
    }
    const told = paddock.events.filter((event) => event.type === 'engine' && event.what === 'splice_void')
    expect(told).toEqual([
      { type: 'engine', what: 'splice_void', replica: engine.url, detail: expect.stringContaining(why) },
    ])
  })

  it('is refused where splice is demanded, and doctor says why', async () => {
    const engine = await startScripted(model, '--bad-render', habit)
    await using proxy = await startProxy(engine.url)
    await expect(proxy.open({ policy: { strategy: 'splice' } })).rejects.toMatchObject({
      code: 'ENGINE_INCAPABLE',
      message: expect.stringContaining(why),
    })
    const { out } = await paddock(['doctor', '--no-docker', '--json'], { ENGINE_URL: engine.url })
    const said = JSON.parse(out).findings as { status: string; what: string }[]
    const strategy = said.filter(({ what }) => what.startsWith('strategy auto'))
    expect(strategy).toEqual([
      expect.objectContaining({ status: 'warning', what: expect.stringMatching(`record.*${why}`) }),
    ])
  })
})

it.each(profiles)('no template of ours is taken for one: %s', async (profile) => {
  const engine = await startScripted(profile)
  await using proxy = await startProxy(engine.url)
  const session = await proxy.open({ policy: { strategy: 'auto' } })
  await converse(session, both, { model: profile })
  const log = await session.log()
  expect(new Set(log.calls.map((call) => call.intent.strategy))).toEqual(new Set(['splice']))
  expect(findings(log)).toEqual([])
  expect(proxy.events.some((event) => event.type === 'engine')).toBe(false)
})
