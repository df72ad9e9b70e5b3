/** vLLM's render leaves out a `max_tokens` of 16, and its generate goes on to the end of the context without one. */
import { expect, it } from 'vitest'
import { script, startProxy } from '../proxy/support.ts'
import { startScripted } from './support.ts'

const model = 'scripted-hermes'
const words = Array.from({ length: 60 }, (_, place) => `word${place}`).join(' ')

it.each([15, 16, 17])('a spliced call that asks for %i tokens gets so many', async (most) => {
  const engine = await startScripted(model)
  await engine.control('/scripts', script('Talk.', [{ say: words }]))
  await using proxy = await startProxy(engine.url)
  const session = await proxy.open({ policy: { strategy: 'splice' } })
  for (const stream of [false, true]) {
    const messages = [{ role: 'user', content: 'Talk.' }]
    const answer = await session.post({ model, messages, max_tokens: most, stream })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('length')])
  }
  const sampled = (await session.log()).segments.filter(({ origin }) => origin === 'sampled')
  expect(sampled.map(({ tokens }) => tokens.length)).toEqual([most, most])
})
