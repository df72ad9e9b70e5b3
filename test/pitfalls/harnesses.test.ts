import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hangUp, keyHeader, type Lab, type LabRollout, openLab } from '../lab/lab.ts'
import { dialects } from '../lab/official.ts'
import type { Json, Said, Speaker } from '../lab/speaker.ts'

/** What harnesses do to their own history, and what they do beside it. */
let lab: Lab
beforeAll(async () => {
  lab = await openLab({ flags: ['--tokens-per-second', '400'] })
  const steps = [{ think: 'I look.' }, { shell: 'ls -la' }, { shell: 'wc -l a.txt' }, { say: 'Two lines.' }]
  await lab.script('Count the lines.', steps)
  const both = { parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }
  await lab.script('Look twice.', [both, { say: 'Both seen.' }])
  await lab.script('Look aside.', [{ shell: 'ls aside' }, { say: 'Nothing.' }])
})
afterAll(() => lab[Symbol.asyncDispose]())

describe('pitfall 07: a harness rewrites what it was answered', () => {
  /** What is done to the history behind the first answer, and the causes that the ledger must give. */
  const edits: readonly (readonly [string, (history: Json[]) => void, string | null])[] = [
    [
      'a repaired tool call (opencode repairToolCall)',
      (history) => {
        history[2].tool_calls[0].function.arguments = '{"command":"ls -la ."}'
      },
      'harness_rewrite',
    ],
    [
      'a system reminder behind the tool result',
      (history) => history.push({ role: 'user', content: '<system-reminder>Be brief.</system-reminder>' }),
      null,
    ],
    [
      'a system message in the middle',
      (history) => history.splice(3, 0, { role: 'system', content: 'Be brief.' }),
      null,
    ],
    [
      'a changed first message',
      (history) => {
        history[1].content = 'Count the lines. (It is late.)'
      },
      'harness_rewrite',
    ],
    [
      'another system prompt',
      (history) => {
        history[0].content = 'Take great care.'
      },
      'harness_rewrite',
    ],
    [
      'other words in the answer',
      (history) => {
        history[2].reasoning = 'I was told to look.'
      },
      'harness_rewrite',
    ],
  ]

  it.each(edits)('%s', async (_name, edit, cause) => {
    for (const strategy of ['splice', 'record'] as const) {
      const rollout = await lab.rollout({ strategy, history: 'sampled' })
      const speaker = rollout.speaker('chat')
      speaker.user('Count the lines.')
      const said = await rollout.ask(speaker)
      speaker.take(said, 'given')
      speaker.results(said, ['a.txt'])
      edit(speaker.history)
      await rollout.ask(speaker)
      const { forks, report, manifest } = await rollout.judge()
      expect(report.deviations).toEqual([])
      expect(manifest.tokens.trainable).toBe(report.sampledTokens)
      expect(forks.filter((one) => one === 'unknown')).toEqual([])
      // Whatever was edited is never spliced over: each row is what the engine was given.
      if (cause === null) expect([strategy, forks, report.rows]).toEqual([strategy, [], 1])
      else if (forks.length > 0) expect([forks.length, report.rows]).toEqual([1, 2])
      else expect(report.rows).toBe(2)
      if (cause !== null && strategy === 'splice') expect(forks.every((one) => one === cause)).toBe(true)
    }
  })

  it.each(['splice', 'record'] as const)('old results of tools are cleared (%s)', async (strategy) => {
    const rollout = await lab.rollout({ strategy, history: 'sampled' })
    const speaker = rollout.speaker('chat')
    speaker.user('Count the lines.')
    for (const result of ['a.txt '.repeat(40), '2 a.txt']) {
      const said = await rollout.ask(speaker)
      speaker.take(said, 'given')
      speaker.results(said, [result])
    }
    const [first] = speaker.history.filter((message) => message.role === 'tool')
    first.content = '[Old tool result content cleared]'
    const said = await rollout.ask(speaker)
    speaker.take(said, 'given')
    speaker.user('Count the lines.')
    await rollout.ask(speaker)
    const { forks, report, manifest } = await rollout.judge()
    expect(report.deviations).toEqual([])
    expect(manifest.tokens.trainable).toBe(report.sampledTokens)
    // What follows extends the edited history.
    expect([forks, report.rows]).toEqual([['context_edit'], 2])
  })

  it('parallel calls split into turns of their own', async () => {
    for (const strategy of ['splice', 'record'] as const) {
      const rollout = await lab.rollout({ strategy, history: 'sampled' })
      const speaker = rollout.speaker('chat')
      speaker.user('Look twice.')
      const said = await rollout.ask(speaker)
      const [message] = said.native
      for (const call of message.tool_calls) {
        speaker.history.push({ role: 'assistant', content: null, tool_calls: [call] })
        speaker.history.push({ role: 'tool', tool_call_id: call.id, content: 'done' })
      }
      await rollout.ask(speaker)
      const { forks, report } = await rollout.judge()
      expect(report.deviations).toEqual([])
      expect(report.rows).toBe(2)
      expect(forks).not.toContain('unknown')
    }
  })
})

describe('pitfall 08: side calls do not pollute the chain', () => {
  it.each(dialects)('titles, sub-agents, compactions and counts stand apart (%s)', async (dialect) => {
    const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
    const speaker = rollout.speaker(dialect)
    speaker.user('Count the lines.')
    for (let turn = 0; turn < 6; turn += 1) {
      const title = rollout.speaker(dialect, 'Write a title of three words.')
      title.user('Name this.')
      if (turn === 1) await rollout.ask(title, { tools: [], maxTokens: 20 })
      if (turn === 1) await aside(rollout, rollout.speaker(dialect, 'You look aside.'))
      if (turn === 1) await count(rollout, speaker)
      const said = await rollout.ask(speaker)
      speaker.take(said, 'given')
      if (said.calls.length === 0) break
      speaker.results(
        said,
        said.calls.map(() => 'done'),
      )
    }
    const { forks, report, manifest, log } = await rollout.judge()
    expect([forks, report.deviations]).toEqual([[], []])
    const classes = Map.groupBy(log.calls, (call) => call.intent.callClass)
    expect([...classes.keys()].toSorted()).toEqual(['main', 'subagent', 'title'])
    expect(classes.get('title')).toHaveLength(1)
    // Counting is no generation: it is nowhere in the record.
    expect(log.calls.every((call) => !/count/i.test(call.intent.path))).toBe(true)
    // The agent, its helper, and in the archive the title.
    expect(report.rows).toBe(3)
    expect(Object.keys(manifest.tokens.masked)).toEqual(['class'])
  })

  async function aside(rollout: LabRollout, helper: Speaker): Promise<void> {
    helper.user('Look aside.')
    for (let turn = 0; turn < 3; turn += 1) {
      const said = await rollout.ask(helper, {}, { 'x-claude-code-agent-id': 'helper-1' })
      helper.take(said, 'given')
      if (said.calls.length === 0) return
      helper.results(said, ['nothing'])
    }
  }

  async function count(rollout: LabRollout, speaker: Speaker): Promise<void> {
    const { body } = speaker.request({ model: lab.model, stream: false, maxTokens: 9, tools: [] })
    const headers = keyHeader(speaker.dialect, rollout.key)
    if (speaker.dialect === 'messages') {
      const { max_tokens: _limit, stream: _stream, ...rest } = body
      expect((await rollout.post('/v1/messages/count_tokens', rest, headers)).status).toBe(200)
    }
    if (speaker.dialect === 'gemini') {
      const path = `/v1beta/models/${lab.model}:countTokens`
      expect((await rollout.post(path, { contents: body.contents }, headers)).status).toBe(200)
    }
  }

  it('a compaction goes on as a row of its own', async () => {
    const rollout = await lab.rollout({ strategy: 'splice', history: 'sampled' })
    const speaker = rollout.speaker('chat')
    speaker.user('Count the lines.')
    const said = await rollout.ask(speaker)
    speaker.take(said, 'given')
    speaker.results(said, ['a.txt'])
    speaker.restart('Take care.')
    speaker.user('This session is being continued from a previous one. Summary: looked. Count the lines.')
    await rollout.ask(speaker)
    const { forks, report, manifest } = await rollout.judge()
    expect([forks, report.deviations, report.rows]).toEqual([[], [], 2])
    expect(manifest.tokens.trainable).toBe(report.sampledTokens)
  })
})

describe('pitfall 09: a retry of the client duplicates no turn', () => {
  it('the official client retries after a 429 and after a dead engine: one answer, one row', async () => {
    for (const order of [
      { kind: 'http_error', status: 429, retryAfterSeconds: 0 },
      { kind: 'die', at: 'before_headers', count: 2 },
    ]) {
      const rollout = await lab.rollout({ strategy: 'record' })
      await lab.fault({ ...order, match: { session: rollout.sessionId } })
      const client = new OpenAI({ apiKey: rollout.key, baseURL: `${rollout.root}/v1`, maxRetries: 2 })
      const messages = [{ role: 'user' as const, content: 'Look aside.' }]
      const answer = await client.chat.completions.create({ model: lab.model, messages })
      expect(answer.choices[0]?.message.content).toBeTruthy()
      const { report, log, manifest } = await rollout.judge()
      expect([report.deviations, report.rows]).toEqual([[], 1])
      expect(log.calls.map((call) => call.commit?.outcome.kind)).toEqual(['engine_error', 'complete'])
      expect(log.calls[1]?.intent.retryOf).toBe(log.calls[0]?.intent.id)
      expect(manifest.tokens.trainable).toBe(report.sampledTokens)
    }
  })

  it.each(dialects)(
    'the same request marked as a retry gets the same answer, without one it is a sibling (%s)',
    async (dialect) => {
      const rollout = await lab.rollout({ strategy: 'record' })
      const speaker = rollout.speaker(dialect)
      speaker.user('Count the lines.')
      const first = await rollout.ask(speaker)
      const again = await rollout.ask(speaker, {}, { 'x-stainless-retry-count': '1' })
      expect([again.text, again.calls]).toEqual([first.text, first.calls])
      expect((await rollout.log()).calls).toHaveLength(1)
      await rollout.ask(speaker)
      const { report, log } = await rollout.judge()
      expect(log.calls).toHaveLength(2)
      expect([report.deviations, report.rows]).toEqual([[], 2])
    },
  )
})

describe('pitfall 10: a client that hangs up loses nothing and leaves nothing half recorded', () => {
  it.each(dialects)('the engine finishes; whoever comes back gets the answer (%s)', async (dialect) => {
    const { rollout, again } = await leave(dialect, 'finish')
    expect(again.calls).toHaveLength(1)
    const { report, log, manifest } = await rollout.judge()
    expect([report.deviations, report.rows, log.calls.length]).toEqual([[], 1, 1])
    expect(manifest.tokens.trainable).toBe(report.sampledTokens)
  })

  it('the engine is aborted where the session says so: what came is kept under its own reason', async () => {
    const { rollout } = await leave('chat', 'abort')
    const { report, log, manifest } = await rollout.judge()
    expect(report.deviations).toEqual([])
    expect(log.calls.map((call) => [call.commit?.outcome, call.superseded])).toEqual([
      [{ kind: 'client_gone', upstream: 'aborted' }, true],
      [{ kind: 'complete' }, false],
    ])
    expect(Object.keys(manifest.tokens.not_exported)).toEqual(['superseded'])
  })

  async function leave(
    dialect: (typeof dialects)[number],
    onDisconnect: 'finish' | 'abort',
  ): Promise<{ readonly rollout: LabRollout; readonly again: Said }> {
    const rollout = await lab.rollout({ strategy: 'record', onDisconnect })
    const speaker = rollout.speaker(dialect)
    speaker.user('Count the lines.')
    const asking = { model: lab.model, stream: true, maxTokens: 600, tools: [] }
    const { path, body } = speaker.request({ ...asking, tools: [{ name: 'shell', parameters: shellParameters }] })
    await hangUp(`${rollout.root}${path}`, body, keyHeader(dialect, rollout.key))
    if (onDisconnect === 'abort') await settled(rollout)
    const again = await rollout.ask(speaker, {
      stream: true,
      tools: [{ name: 'shell', parameters: shellParameters }],
    })
    return { rollout, again }
  }

  /** The call that was left is committed. */
  async function settled(rollout: LabRollout): Promise<void> {
    while ((await rollout.log()).calls.every((call) => call.commit === null));
  }
})

const shellParameters = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
