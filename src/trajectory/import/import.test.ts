import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { builtInExporters, runExport } from '../export/index.ts'
import { fsck } from '../fsck/index.ts'
import { openStore } from '../store/index.ts'
import { importTrajectories, type ImportReport } from './index.ts'
import { roundTrip } from './round-trip.fixture.ts'

let root = ''
let made = 0
beforeEach(async () => {
  root = tempDir()
})

async function file(name: string, text: string): Promise<string> {
  const path = join(root, name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
  return path
}

interface Taken {
  readonly report: ImportReport
  readonly data: string
}

async function take(
  format: string,
  paths: readonly string[],
  data = join(root, `data-${(made += 1)}`),
): Promise<Taken> {
  await using store = await openStore(data)
  return { report: await importTrajectories(store, { format, paths }), data }
}

/** The lines of the first file of an export, and its manifest. */
async function exported(data: string, format: string, options: object = {}): Promise<readonly string[]> {
  const out = join(root, `out-${(made += 1)}`)
  await using store = await openStore(data)
  const query = { includeNullVerdicts: true }
  const manifest = await runExport({ reader: store, exporter: format, out, options, query, paddockVersion: '1.2.3' })
  const text = await readFile(join(out, manifest.files[0]?.name ?? ''), 'utf8')
  return text.split('\n').filter(Boolean)
}

const line = (messages: readonly string[], offered: string | null, more = ''): string =>
  `{"messages":[${messages.join(',')}]${offered === null ? '' : `,"tools":${offered}`}${more}}`

describe('importTrajectories', () => {
  it('gives conversations back by way of every format, equal where the format can say it', async () => {
    await roundTrip(root, 100)
  })

  it('is left out of every format for RL by its name, and none of it counts as sampled', async () => {
    const one = line(['{"role":"user","content":"a"}', '{"role":"assistant","content":"b"}'], null, ',"reward":1')
    const { data } = await take('chat', [await file('one.jsonl', one)])
    await using store = await openStore(data)
    for (const exporter of builtInExporters.all().filter(({ purpose }) => purpose === 'rl')) {
      const out = join(root, exporter.name)
      const manifest = await runExport({ reader: store, exporter, out, paddockVersion: '1.2.3' })
      expect(manifest.rollouts.dropped).toMatchObject([{ reason: 'imported', detail: 'one.jsonl#1' }])
      expect(manifest.rows.count).toBe(0)
      expect(manifest.tokens.sampled).toBe(0)
    }
  })

  it('takes the same files in again under other options, and none of those is left without effect', async () => {
    const one = line(['{"role":"user","content":"a"}', '{"role":"assistant","content":"b"}'], null)
    const paths = [await file('one.jsonl', one)]
    await using store = await openStore(join(root, 'options'))
    const first = await importTrajectories(store, { format: 'chat', paths })
    const more = { name: 'other', split: 'test', reward: 1, labels: { set: 'x' } }
    const second = await importTrajectories(store, { format: 'chat', paths, ...more })
    expect(second).toMatchObject({ isNew: true, taken: 1, withReward: 1 })
    expect(await importTrajectories(store, { format: 'chat', paths, ...more })).toMatchObject({
      runId: second.runId,
      taken: 0,
    })
    expect(await importTrajectories(store, { format: 'chat', paths })).toMatchObject({ runId: first.runId, taken: 0 })
    const [rollout] = await store.catalogue.rollouts({ runId: second.runId })
    expect(rollout).toMatchObject({ labels: { set: 'x' }, verdicts: [{ reward: 1 }] })
    expect(await store.catalogue.task(rollout?.taskDigest ?? '')).toMatchObject({ split: 'test' })
    expect(await store.catalogue.run(second.runId)).toMatchObject({ name: 'other' })
  })

  it('makes pairs of what was imported of one task', async () => {
    const of = (said: string, reward: number): string =>
      line(
        ['{"role":"user","content":"q"}', JSON.stringify({ role: 'assistant', content: said })],
        null,
        `,"reward":${reward}`,
      )
    const { data } = await take('chat', [await file('two.jsonl', [of('bad', 0), of('good', 1)].join('\n'))])
    const [pair, ...others] = await exported(data, 'dpo')
    expect(others).toEqual([])
    expect(JSON.parse(pair ?? '')).toMatchObject({
      prompt: [{ role: 'user', content: 'q' }],
      chosen: [{ content: 'good' }],
      rejected: [{ content: 'bad' }],
      margin: 1,
    })
  })

  it('goes on where it was cut off, and changes nothing the next time', async () => {
    const lines = Array.from({ length: 60 }, (_, nth) =>
      line([`{"role":"user","content":"${nth % 7}"}`, `{"role":"assistant","content":"${nth}"}`], null),
    )
    const path = await file('many.jsonl', lines.join('\n'))
    const data = join(root, 'cut')
    const store = await openStore(data)
    let labels = 0
    const cut = new AbortController()
    const label = store.catalogue.label.bind(store.catalogue)
    store.catalogue.label = async (...given) => {
      if ((labels += 1) === 25) cut.abort(new Error('cut off'))
      // Those that are under way then stay half done, as a kill leaves them.
      if (cut.signal.aborted) throw new Error('cut off')
      return label(...given)
    }
    await expect(importTrajectories(store, { format: 'chat', paths: [path], signal: cut.signal })).rejects.toThrow(
      'cut off',
    )
    await store.close()
    const { report } = await take('chat', [path], data)
    expect(report.isNew).toBe(false)
    expect(report.taken).toBeGreaterThan(30)
    expect(report.taken).toBeLessThan(60)
    expect((await take('chat', [path], data)).report).toMatchObject({ runId: report.runId, taken: 0, isNew: false })
    const got = await exported(data, 'openai')
    expect(got.toSorted()).toEqual(lines.toSorted())
    await using again = await openStore(data)
    const rollouts = await again.catalogue.rollouts({ runId: report.runId })
    const places = rollouts.filter(({ end }) => end === 'completed').map(({ groupId, slot }) => `${groupId}/${slot}`)
    expect(new Set(places).size).toBe(60)
    expect((await again.catalogue.runs()).length).toBe(1)
  })

  it.each([
    ['chat', '{"messages":[{"role":"user","content":"a"}]}', 'no answer of an assistant'],
    ['chat', '{"messages":[]}', 'messages'],
    ['chat', '{"messages":', 'no JSON'],
    ['chat', '{"messages":[{"role":"robot","content":"a"}]}', 'role'],
    [
      'sharegpt',
      '{"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"not JSON"}]}',
      'function_call',
    ],
    ['sharegpt', '{"conversations":[{"from":"alien","value":"a"}]}', 'from'],
    ['atif', '{"schema_version":"ATIF-v2.0","agent":{"name":"a","version":"1"},"steps":[]}', 'ATIF-v1.x'],
  ])('takes nothing in of a file of %s with %s', async (format, bad, problem) => {
    const good = {
      chat: line(['{"role":"user","content":"a"}', '{"role":"assistant","content":"b"}'], null),
      sharegpt: '{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}',
      atif: '{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"agent","message":"b"}]}',
    }[format]
    const path = await file('mixed.jsonl', `${good}\n\n${bad}\n`)
    const data = join(root, 'data')
    await expect(take(format, [path], data)).rejects.toMatchObject({
      code: 'IMPORT_INVALID',
      message: expect.stringContaining('mixed.jsonl#3'),
    })
    await expect(take(format, [path], data)).rejects.toMatchObject({ message: expect.stringContaining(problem) })
    await using store = await openStore(data)
    expect(await store.catalogue.runs()).toEqual([])
  })

  it('names each problem with its place, and the format that the file looks like', async () => {
    const chat = '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'
    const sharegpt = '{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}'
    const refused = async (format: string, text: string) =>
      take(format, [await file('given.json', text)], join(root, 'data')).catch((error: unknown) => error)
    expect(await refused('chat', sharegpt)).toMatchObject({
      fix: expect.stringContaining('--format sharegpt'),
      data: { like: 'sharegpt' },
    })
    expect(await refused('atif', chat)).toMatchObject({ fix: expect.stringContaining('--format chat') })
    expect(await refused('chat', `[${chat},${JSON.stringify(atif())}]`)).toMatchObject({
      message: expect.stringContaining('given.json#2'),
      fix: expect.stringContaining('--format atif'),
    })
    const wrong = await refused('chat', '{"messages":[{"role":"user"},{"role":"robot"}],"reward":"high"}')
    expect(wrong).toMatchObject({
      message: expect.stringMatching(/^given\.json: messages\[1\]\.role: [^✖→\n]+; reward: [^✖→\n]+$/),
      fix: expect.stringMatching(/^Correct the file/),
    })
  })

  const atif = (more: object = {}): object => ({
    schema_version: 'ATIF-v1.7',
    agent: { name: 'terminus', version: '2.0', model_name: 'm' },
    steps: [
      { step_id: 1, source: 'user', message: 'do it' },
      { step_id: 2, source: 'agent', message: 'ls', observation: { results: [{ content: 'a b' }] } },
      { step_id: 3, source: 'agent', message: 'done' },
    ],
    ...more,
  })

  it('takes trials of Harbor: their reward, none where the trial failed, and what the agent was told between', async () => {
    const trial = async (name: string, result: object): Promise<void> => {
      await file(`job/${name}/result.json`, JSON.stringify({ task_name: 't', trial_name: name, ...result }))
      await file(`job/${name}/agent/trajectory.json`, JSON.stringify(atif()))
    }
    await trial('t__1', { verifier_result: { rewards: { reward: 1 } } })
    await trial('t__2', {
      verifier_result: { rewards: { reward: 1 } },
      exception_info: { exception_type: 'AgentTimeoutError' },
    })
    await trial('t__3', { verifier_result: null })
    const { report, data } = await take('harbor', [join(root, 'job')])
    expect(report).toMatchObject({ trajectories: 3, groups: 1, withReward: 1 })
    await using store = await openStore(data)
    const rollouts = await store.catalogue.rollouts({ runId: report.runId })
    expect(rollouts.map(({ labels, verdicts }) => [labels, verdicts[0]?.reward ?? null])).toEqual(
      expect.arrayContaining([
        [expect.objectContaining({ trial: 't__1', agent: 'terminus', agent_version: '2.0', model: 'm' }), 1],
        [expect.objectContaining({ trial: 't__2', exception: 'AgentTimeoutError' }), null],
        [expect.objectContaining({ trial: 't__3', place: 'job/t__3' }), null],
      ]),
    )
    await store.close()
    expect(JSON.parse((await exported(data, 'openai'))[0] ?? '')).toEqual({
      messages: [
        { role: 'user', content: 'do it' },
        { role: 'assistant', content: 'ls' },
        { role: 'user', content: 'a b' },
        { role: 'assistant', content: 'done' },
      ],
    })
  })

  it('keeps a sub-agent apart from who called it', async () => {
    const path = await file(
      'with.json',
      JSON.stringify(atif({ subagent_trajectories: [atif({ trajectory_id: 'inner' })] })),
    )
    const { report, data } = await take('atif', [path])
    await using store = await openStore(data)
    const [rollout] = await store.catalogue.rollouts({ runId: report.runId })
    const sessions = await store.recorder.sessions({ rolloutId: rollout?.id ?? '' })
    const classes = await Promise.all(
      sessions.map(async ({ id }) => (await store.recorder.session(id)).calls.map(({ intent }) => intent.callClass)),
    )
    expect(classes.toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
      ['main', 'main'],
      ['subagent', 'subagent'],
    ])
    await store.close()
    // Fine-tuning of the agent has its own conversation only.
    expect(await exported(data, 'openai')).toHaveLength(1)
    expect(await exported(data, 'atif')).toHaveLength(2)
  })

  it('marks answers whose tools failed, and leaves the weights of others as they came', async () => {
    const messages = [
      '{"role":"user","content":"go"}',
      '{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"sh","arguments":"{}"}}],"weight":1}',
      '{"role":"tool","tool_call_id":"1","content":"Error: no such file"}',
      '{"role":"assistant","content":"then so", "weight": 1}',
    ]
    const { data } = await take('chat', [await file('e.jsonl', line(messages, null))])
    expect(await exported(data, 'openai')).toEqual([line(messages, null)])
    const marked = messages.map((text) => text.replace('}],"weight":1}', '}],"weight":0}'))
    expect(await exported(data, 'openai', { failed: '^Error' })).toEqual([line(marked, null)])
    await expect(exported(data, 'openai', { failed: '(' })).rejects.toMatchObject({ code: 'USAGE' })
  })
})

it('brings values of single answers, and exports them as step labels', async () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })
  const messages = [
    { role: 'user', content: 'Find it.' },
    { role: 'assistant', content: null, tool_calls: [call('one')] },
    { role: 'tool', tool_call_id: 'one', content: 'nothing' },
    { role: 'assistant', content: null, tool_calls: [call('two')] },
    { role: 'tool', tool_call_id: 'two', content: 'there' },
    { role: 'assistant', content: 'Found.' },
  ]
  const line = (values: unknown, reward: number | null = 1) => JSON.stringify({ messages, reward, values })
  const { data } = await take('chat', [await file('valued.jsonl', `${line([0.2, null, 0.9])}\n${line(null)}\n`)])
  const steps = (await exported(data, 'step-labels', { threshold: 0.5 })).map(
    (text) => (JSON.parse(text) as { steps: readonly { value: number | null; label?: boolean }[] }).steps,
  )
  expect(steps.map((one) => one.map(({ value, label }) => [value, label]))).toEqual([
    [
      [0.2, false],
      [null, undefined],
      [0.9, true],
    ],
  ])
  expect((await fsck(data)).problems).toEqual([])
  for (const bad of [line([0.2]), line([0.2, null, 0.9], null)]) {
    await expect(take('chat', [await file('bad.jsonl', bad)])).rejects.toMatchObject({ code: 'IMPORT_INVALID' })
  }
})
