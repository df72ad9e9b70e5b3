import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fsck, openReader, openStore } from '../../src/trajectory/index.ts'
import { missingFrom, type Seen, warmProxy, witnessedCall } from '../lab/doomed.ts'
import { keyHeader, type Lab, openLab, shell } from '../lab/lab.ts'
import { dialects } from '../lab/official.ts'
import { eventsOf, type Json } from '../lab/speaker.ts'

/** What engines leave out, and what strict clients and trainers cannot do without. */
const steps = [{ think: 'I look.' }, { parallel: [{ shell: 'ls -la "a b"' }, { shell: 'wc -l' }] }, { say: 'Done.' }]
const talk = [{ say: 'Once upon a time there was a proxy. It kept every token. The end.' }]

let lab: Lab
beforeAll(async () => {
  lab = await openLab({ model: 'scripted-qwen3' })
  await lab.script('Look.', steps)
  await lab.script('Talk.', talk)
})
afterAll(() => lab[Symbol.asyncDispose]())

describe('pitfall 11: a stream in which a parser swallows token ids', () => {
  it('of a release that is known for it is asked without stream and given as one, whole', async () => {
    await using old = await openLab({ flags: ['--vllm-version', '0.11.2'] })
    await old.script('Look.', steps)
    for (const dialect of dialects) {
      const rollout = await old.rollout()
      await old.fault({ kind: 'drop_token_ids', every: 2, count: 0, match: { session: rollout.sessionId } })
      const speaker = rollout.speaker(dialect)
      speaker.user('Look.')
      const said = await rollout.ask(speaker, { stream: true })
      expect(said.calls).toHaveLength(2)
      const { report, findings } = await rollout.judge()
      expect([report.deviations, findings, report.trainedTokens]).toEqual([[], [], report.sampledTokens])
    }
  })

  it('of any other is found by the counts: nothing is trained that is not whole', async () => {
    const rollout = await lab.rollout()
    await lab.fault({ kind: 'drop_token_ids', every: 2, match: { session: rollout.sessionId } })
    const speaker = rollout.speaker('chat')
    speaker.user('Look.')
    await rollout.ask(speaker, { stream: true })
    const { findings, report, manifest } = await rollout.judge()
    expect(findings).toContain('count_mismatch')
    expect(manifest.drift.exactness_rate).toBe(0)
    expect([report.trainedTokens, manifest.tokens.trainable]).toEqual([0, 0])
  })
})

describe('pitfall 12: strict clients want id, type and name with a tool call', () => {
  const deltasFor = async (strategy: 'record' | 'splice', userAgent: string): Promise<Json[]> => {
    const rollout = await lab.rollout({ strategy })
    const speaker = rollout.speaker('chat')
    speaker.user('Look.')
    const { path, body } = speaker.request({ model: lab.model, stream: true, maxTokens: 500, tools: [shell] })
    const headers = { ...keyHeader('chat', rollout.key), 'user-agent': userAgent }
    const { text } = await rollout.post(path, body, headers)
    return eventsOf(text).flatMap((event: Json) => event.choices[0]?.delta.tool_calls ?? [])
  }
  const whole = { id: expect.stringMatching(/./) as string, type: 'function', function: { name: 'shell' } }

  it.each(['record', 'splice'] as const)('all three are on the first piece of each call (%s)', async (strategy) => {
    const deltas = await deltasFor(strategy, 'OpenAI/JS 7')
    const calls = Map.groupBy(deltas, (delta) => delta.index as number)
    expect([...calls.keys()]).toEqual([0, 1])
    for (const [first, ...later] of calls.values()) {
      expect(first).toMatchObject(whole)
      // What is repeated would be appended by clients that join strings.
      expect(later.filter((delta) => 'id' in delta || 'name' in (delta.function ?? {}))).toEqual([])
    }
    expect(new Set([...calls.values()].map(([first]) => first.id as string)).size).toBe(2)
  })

  it('and on every piece for the family of clients that refuses pieces without them', async () => {
    const deltas = await deltasFor('record', 'opencode/1.2.3 ai-sdk/provider-utils/3.0.0')
    expect(deltas.length).toBeGreaterThan(4)
    for (const delta of deltas) expect(delta).toMatchObject(whole)
  })
})

describe('pitfall 13: the end of an answer leaves only when it is stored', () => {
  // Every dialect with both strategies, 500 times, is `test/torture/proxy-500-kills.test.ts`.
  it.each([
    ['chat', 'splice'],
    ['responses', 'record'],
    ['messages', 'splice'],
    ['gemini', 'record'],
  ] as const)(
    'a proxy that is killed at the first thing to act on has it stored (%s, %s)',
    async (dialect, strategy) => {
      const directory = join(lab.directory, `killed-${dialect}`)
      const proxy = await warmProxy(directory, lab.engine.url, [strategy])
      const { origin, sessions } = await proxy.open()
      const [session] = sessions
      if (session === undefined) throw new Error('no session')
      const seen: Seen[] = []
      await witnessedCall({
        origin,
        session,
        dialect,
        question: 'Look.',
        model: lab.model,
        stream: true,
        agent: false,
        seen: (callId, acted) => {
          seen.push({ round: 0, session: session.id, callId, acted })
          // In the same turn of the loop in which the client reads it.
          if (acted !== null) proxy.kill().catch(() => undefined)
        },
      }).catch(() => undefined)
      await proxy.kill()
      expect(seen.filter((one) => one.acted !== null).length).toBeGreaterThan(0)
      await (await openStore(directory)).close()
      await using reader = await openReader(directory)
      expect(missingFrom([await reader.recorder.session(session.id)], seen)).toEqual([])
      expect((await fsck(directory)).problems).toEqual([])
    },
  )
})

describe('pitfall 14: logprobs that are null, no number, or the floor', () => {
  it.each(['NaN', 'null', '-9999.0'])(
    '%s: the token is flagged and breaks no JSON; an answer with no number is masked whole',
    async (value) => {
      for (const stream of [false, true]) {
        const rollout = await lab.rollout()
        const order = { kind: 'bad_logprob', value: value === '-9999.0' ? '-9999' : value, token: 3 }
        await lab.fault({ ...order, match: { session: rollout.sessionId } })
        const speaker = rollout.speaker('chat')
        speaker.user('Talk.')
        expect((await rollout.ask(speaker, { stream, tools: [] })).text).toContain('It kept every token.')
        const { findings, report, manifest } = await rollout.judge()
        expect(findings).toEqual([value === '-9999.0' ? 'floored_logprob' : 'nan_logprob'])
        // The floor is what the engine says; no number comes from a broken forward pass.
        const lost = value === '-9999.0' ? 0 : report.sampledTokens
        expect(manifest.tokens.trainable).toBe(report.sampledTokens - lost)
        expect(report.deviations.filter((one) => one.kind !== 'logprob')).toEqual([])
        if (lost > 0) expect([manifest.tokens.masked, report.deviations]).toEqual([{ nan_logprob: lost }, []])
      }
    },
  )

  it('logprobs are asked for with the count that gives them, whatever the client asked', async () => {
    for (const asked of [
      {},
      { logprobs: true },
      { logprobs: true, top_logprobs: null },
      { logprobs: true, top_logprobs: 2 },
    ]) {
      const rollout = await lab.rollout()
      const body = { model: lab.model, messages: [{ role: 'user', content: 'Talk.' }], ...asked }
      const reply = await rollout.post('/v1/chat/completions', body, keyHeader('chat', rollout.key))
      const [choice] = (JSON.parse(reply.text) as Json).choices
      // The client sees logprobs where it asked for them and nowhere else.
      expect('logprobs' in asked).toBe((choice.logprobs?.content ?? null) !== null)
      const { findings, report } = await rollout.judge()
      expect([findings, report.deviations, report.trainedTokens]).toEqual([[], [], report.sampledTokens])
    }
  })
})

it('pitfall 15: ids without logprobs of their own are never paired with others, and no tail is filled with zeros', async () => {
  const rollout = await lab.rollout()
  await lab.fault({ kind: 'null_logprobs', match: { session: rollout.sessionId } })
  const speaker = rollout.speaker('chat')
  speaker.user('Talk.')
  await rollout.ask(speaker, { tools: [] })
  const { findings, report, manifest, log } = await rollout.judge()
  expect(findings).toEqual(['missing_logprobs'])
  const sampled = log.segments.find((segment) => segment.origin === 'sampled')
  expect([sampled?.tokens.length, sampled?.logprobs]).toEqual([report.sampledTokens, null])
  expect([manifest.tokens.trainable, manifest.tokens.masked]).toEqual([0, { missing_logprob: report.sampledTokens }])
  expect(report.deviations).toEqual([])

  await using blind = await openLab({ flags: ['--wire', 'openai'], adapter: 'openai' })
  await blind.script('Talk.', talk)
  const other = await blind.rollout()
  const words = other.speaker('chat')
  words.user('Talk.')
  expect((await other.ask(words, { tools: [] })).text).toContain('It kept every token.')
  // Text alone is no sample: nothing is tokenized again to look like one.
  const { log: blindLog } = await other.judge()
  expect(blindLog.segments).toEqual([])
})

it('pitfall 16: text cut at a stop string is shorter than its ids: the cut is where the next turn hangs', async () => {
  for (const strategy of ['record', 'splice'] as const) {
    const rollout = await lab.rollout({ strategy, history: 'sampled' })
    const messages: Json[] = [{ role: 'user', content: 'Talk.' }]
    const headers = keyHeader('chat', rollout.key)
    const body = { model: lab.model, stop: [' It kept'] }
    const first: Json = JSON.parse((await rollout.post('/v1/chat/completions', { ...body, messages }, headers)).text)
    expect(first.choices[0].message.content).toBe('Once upon a time there was a proxy.')
    messages.push(first.choices[0].message, { role: 'user', content: 'Go on.' })
    await rollout.post('/v1/chat/completions', { ...body, messages }, headers)
    const { report, log } = await rollout.judge()
    const [truth] = await rollout.truth()
    const own = log.segments.filter((one) => one.origin === 'sampled' && one.callId === log.calls[0]?.intent.id)
    const tail = own.find((one) => one.stopCut)
    expect(tail?.tokens.length).toBeGreaterThan(0)
    // Visible part and tail together are what was sampled; the tail is a leaf.
    expect(own.flatMap((one) => [...one.tokens])).toEqual(truth?.tokens)
    expect(log.segments.some((one) => one.parent?.segmentId === tail?.id)).toBe(false)
    // The journal knows of no cut: to it the first answer, tail and all, was never gone on from.
    expect(report.deviations.filter((one) => one.kind !== 'extension')).toEqual([])
    expect(report.rows).toBe(1)
  }
})
