/** What other formats say of an answer that must not train, of a task and of a trajectory in several files is kept by every import and export. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { runExport } from '../export/index.ts'
import { openStore } from '../store/index.ts'
import { importTrajectories, type ImportReport } from './index.ts'

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

describe('an answer that its file keeps from training', () => {
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const chat = (bad: object, line: object = {}) => ({
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'bad', ...bad },
      { role: 'user', content: 'again' },
      { role: 'assistant', content: 'good' },
    ],
    reward: 1,
    ...line,
  })
  const sharegpt = (bad: object, line: object = {}) => ({
    conversations: [
      { from: 'human', value: 'q' },
      { from: 'gpt', value: 'bad', ...bad },
      { from: 'human', value: 'again' },
      { from: 'gpt', value: 'good' },
    ],
    reward: 1,
    ...line,
  })
  const atif = (bad: object) => ({
    schema_version: 'ATIF-v1.8',
    agent: { name: 'a', version: '1' },
    steps: [
      { step_id: 1, source: 'user', message: 'q' },
      { step_id: 2, source: 'agent', message: 'bad', ...bad },
      { step_id: 3, source: 'user', message: 'again' },
      { step_id: 4, source: 'agent', message: 'good' },
    ],
    extra: { reward: 1 },
  })
  const ways: readonly (readonly [string, string, object])[] = [
    ['chat', 'weight 0', chat({ weight: 0 })],
    ['chat', 'weight 0.0 twice', chat({ weight: 0, loss: true })],
    ['chat', 'loss false', chat({ loss: false })],
    ['chat', 'train false', chat({ train: false })],
    ['chat', 'loss false and weight 1', chat({ loss: false, weight: 1 })],
    ['chat', 'mask_history', chat({}, { mask_history: true })],
    [
      'chat',
      'a call of weight 0',
      {
        messages: [
          { role: 'user', content: 'bad' },
          { ...call, weight: 0 },
          { role: 'tool', tool_call_id: 'c', content: '' },
          { role: 'assistant', content: 'good' },
        ],
        reward: 1,
      },
    ],
    ['sharegpt', 'weight 0', sharegpt({ weight: 0 })],
    ['sharegpt', 'loss false', sharegpt({ loss: false })],
    ['sharegpt', 'train false', sharegpt({ train: false })],
    ['sharegpt', 'mask_history', sharegpt({}, { mask_history: true })],
    ['atif', 'is_copied_context', atif({ is_copied_context: true })],
    ['atif', 'llm_call_count 0', atif({ llm_call_count: 0 })],
  ]

  it.each(ways)('in %s by %s trains in no export', async (format, _, value) => {
    const other = JSON.parse(JSON.stringify(value).replaceAll('"good"', '"better"')) as object
    const { data } = await take(format, [
      await file(
        'bad.jsonl',
        [value, { ...other, ...('messages' in other ? { reward: 0.5 } : {}) }]
          .map((one) => JSON.stringify(one))
          .join('\n'),
      ),
    ])
    const openai = (await exported(data, 'openai')).map(
      (text) => JSON.parse(text) as { messages: readonly { role: string; weight?: number }[] },
    )
    expect(openai).toHaveLength(2)
    for (const { messages } of openai)
      expect(messages.filter(({ role }) => role === 'assistant').map(({ weight }) => weight ?? 1)).toEqual([0, 1])
    const steps = (await exported(data, 'atif')).map(
      (text) => JSON.parse(text) as { steps: readonly { source: string; is_copied_context?: boolean }[] },
    )
    expect(steps).toHaveLength(2)
    for (const one of steps)
      expect(
        one.steps.filter(({ source }) => source === 'agent').map((step) => step.is_copied_context ?? false),
      ).toEqual([true, false])
    expect(await exported(data, 'sharegpt')).toEqual([])
    expect(await exported(data, 'sharegpt', { untrained: 'keep', strict: false })).toHaveLength(2)
    // Only the last answer differs, so the pair compares nothing else.
    for (const pair of await exported(data, 'dpo'))
      expect(JSON.parse(pair)).toMatchObject({ chosen: [{ content: 'good' }] })
    // And once more by way of what was exported.
    const out = await file('again.jsonl', (await exported(data, 'atif')).join('\n'))
    const again = await take('atif', [out])
    expect((await exported(again.data, 'openai')).every((text) => text.includes('"weight":0'))).toBe(true)
  })

  it('is no part of a preference where conversations differ in it', async () => {
    const lines = [chat({ weight: 0 }), { ...chat({ content: 'worse' }), reward: 0 }]
    const { data } = await take('chat', [await file('pair.jsonl', lines.map((one) => JSON.stringify(one)).join('\n'))])
    expect(await exported(data, 'dpo')).toEqual([])
  })

  it.each([
    ['chat', chat({ weight: 0.5 }), 'messages[1]: weight: must be 0'],
    ['chat', chat({ weight: '0' }), 'messages[1]: weight: must be 0'],
    ['chat', chat({ loss: 0 }), 'messages[1]: loss'],
    ['chat', chat({ trainable: false }), 'messages[1]: trainable: may mean'],
    ['chat', chat({ mask: 1 }), 'messages[1]: mask: may mean'],
    ['chat', chat({ loss_weight: 0 }), 'messages[1]: loss_weight: may mean'],
    ['chat', chat({ learn: false }), 'messages[1]: learn: may mean'],
    [
      'chat',
      chat({ train_detail: [{ begin_offset: 0, end_offset: 2, train: false }] }),
      'messages[1]: train_detail: cannot be',
    ],
    ['chat', chat({}, { weight: 0.1 }), 'weight: must be 0'],
    ['sharegpt', sharegpt({ weight: 2 }), 'conversations[1]: weight: must be 0'],
    ['sharegpt', sharegpt({ masked: true }), 'conversations[1]: masked: may mean'],
    ['atif', atif({ llm_call_count: -1 }), 'llm_call_count'],
  ])('in %s by unknown words is refused: %o', async (format, value, problem) => {
    await expect(take(format, [await file('odd.jsonl', JSON.stringify(value))])).rejects.toMatchObject({
      code: 'IMPORT_INVALID',
      message: expect.stringContaining(problem),
    })
  })
})

describe('the task of what is imported', () => {
  const said = (first: string, more: object) =>
    JSON.stringify({
      messages: [
        { role: 'user', content: first },
        { role: 'assistant', content: 'a' },
      ],
      ...more,
    })

  it('is one for each name, also if its attempts begin differently', async () => {
    const lines = [
      said('root@3f2c:/app#', { task: 'airline-1', reward: 1 }),
      said('root@99aa:/app#', { task: 'airline-1', reward: 0 }),
      said('x', { task: 'airline-1', instruction: 'Book it.' }),
      said('x', { task: 'airline-2' }),
      said('x', {}),
      said('y', {}),
      said('x', {}),
    ]
    const { report } = await take('chat', [await file('named.jsonl', lines.join('\n'))])
    expect(report).toMatchObject({ trajectories: 7, groups: 4 })
    // Another file of the same tasks: the same tasks.
    const first = await take('chat', [await file('one.jsonl', lines[0] ?? '')])
    const second = await take('chat', [await file('other.jsonl', lines[1] ?? '')], first.data)
    await using store = await openStore(second.data)
    const digests = (await store.catalogue.rollouts({})).map(({ taskDigest }) => taskDigest)
    expect(digests).toHaveLength(2)
    expect(new Set(digests).size).toBe(1)
  })
})

describe('a trajectory that continues in another file', () => {
  const part = (words: string, more: object = {}) =>
    JSON.stringify({
      schema_version: 'ATIF-v1.7',
      agent: { name: 'terminus', version: '2.0' },
      steps: [
        { step_id: 1, source: 'user', message: 'go' },
        { step_id: 2, source: 'agent', message: words },
      ],
      ...more,
    })
  const trial = (name: string) =>
    file(
      `job/${name}/result.json`,
      JSON.stringify({ task_name: 'org/hello', task_checksum: 'c1', verifier_result: { rewards: { reward: 1 } } }),
    )

  it('is one rollout with a row for each part; trials without a trajectory are named', async () => {
    for (const name of ['t__1', 't__2', 't__3']) await trial(name)
    await file('job/result.json', JSON.stringify({ id: 'a job', stats: {} }))
    await file(
      'job/t__1/agent/trajectory.json',
      part('one', {
        continued_trajectory_ref: 'trajectory.cont-1.json',
        subagent_trajectories: [JSON.parse(part('inner'))],
      }),
    )
    await file(
      'job/t__1/agent/trajectory.cont-1.json',
      part('two', { continued_trajectory_ref: 'trajectory.cont-2.json' }),
    )
    await file('job/t__1/agent/trajectory.cont-2.json', part('three'))
    await file('job/t__3/agent/trajectory.json', part('only'))
    const { report, data } = await take('harbor', [join(root, 'job')])
    expect(report).toMatchObject({ trajectories: 2, groups: 1, withReward: 2, withoutTrajectory: ['job/t__2'] })
    const answers = (await exported(data, 'openai')).map(
      (text) => (JSON.parse(text) as { messages: readonly { content: string }[] }).messages.at(-1)?.content,
    )
    expect(new Set(answers)).toEqual(new Set(['one', 'only', 'three', 'two']))
    expect(answers).toHaveLength(4)
    expect(await exported(data, 'atif')).toHaveLength(5)
  })

  it.each([
    ['gone.json', 'gone.json is missing'],
    ['../up.json', 'must name a file in the same folder'],
    ['/etc/passwd', 'must name a file in the same folder'],
    ['trajectory.json', 'trajectory.json is part of another trajectory already'],
  ])('is refused where it names %s', async (name, problem) => {
    await trial('t__1')
    await file('job/t__1/agent/trajectory.json', part('one', { continued_trajectory_ref: name }))
    await expect(take('harbor', [join(root, 'job')])).rejects.toMatchObject({
      code: 'IMPORT_INVALID',
      message: expect.stringContaining(problem),
    })
  })

  it('is read so in a file, and refused in a line of JSON lines', async () => {
    const [one, two] = [part('one', { continued_trajectory_ref: 'two.json' }), part('two')]
    const paths = [await file('own/one.json', one), await file('own/two.json', two)]
    const { report, data } = await take('atif', paths.slice(0, 1))
    expect(report.trajectories).toBe(1)
    expect(await exported(data, 'openai')).toHaveLength(2)
    await expect(take('atif', paths)).rejects.toMatchObject({ message: expect.stringContaining('part of another') })
    await expect(take('atif', [await file('lines.jsonl', one)])).rejects.toMatchObject({
      message: expect.stringContaining('continues in two.json'),
    })
  })
})
