/** Resources servers of NeMo Gym behind the contract: their own tools, their own numbers, and faults of every kind. `npm run real` has the real package. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import type { Task } from '../../core/index.ts'
import { type Box, dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { Environment, Tool, ToolOutcome } from '../contract.ts'
import { nemoGymEnvironment, type NemoGymOptions } from './index.ts'

const lab = join(import.meta.dirname, '../../../test/lab/nemo-gym')
const tasks = join(lab, 'tasks')
const signal = new AbortController().signal

const words = (fault: string | null = null, more: Partial<NemoGymOptions> = {}): Environment =>
  nemoGymEnvironment({
    name: 'words',
    version: '1',
    app: join(lab, 'synonyms.py'),
    settings: { fault },
    python: 'python3',
    ...more,
  })

type Call = readonly [string, object]
const values: Call = ['extract_synonym_values', { synonym_values: [413, 552] }]

/** Set up, each call in order, and what the conversation ended with. Its box is nobody's. */
async function played(environment: Environment, task: Task, calls: readonly Call[], said: string | null = 'Done.') {
  const died = Promise.withResolvers<never>()
  const box = { died: died.promise, killBackground: async () => undefined, freeze: async () => undefined }
  const context = { task, attempt: { id: 'one' }, box: box as unknown as Box, signal, emit: () => undefined }
  await environment.setup(context)
  const outcomes: ToolOutcome[] = []
  for (const [name, args] of calls) {
    const tool = environment.tools(task).find((one) => one.name === name) as Tool
    outcomes.push(await tool.run(context, args))
  }
  const done = async () => {
    const artifacts = await environment.collect({ ...context, lastSaid: async () => said })
    const openBox = () => Promise.reject(new Error('no box is needed'))
    return environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
  }
  return { outcomes, done, end: () => died.resolve({ why: 'destroyed', detail: '' } as never) }
}

const both = () => words().load(tasks, { signal }) as Promise<readonly [Task, Task]>

describe.runIf(await requireDocker())('a resources server of NeMo Gym keeps the environment contract', () => {
  environmentContract({ environment: words(), tasks, make: async () => dockerProvider() })
})

describe('a resources server of NeMo Gym', () => {
  it('has the rows of its file as tasks, and their tools', async () => {
    const [first, second] = await both()
    expect([first, second]).toMatchObject([
      { name: 'words-0', split: 'train', instruction: 'Hand in what calm and quiet are worth, in this order.' },
      { name: 'words-1', instruction: 'Hand in what loud are worth, in this order.' },
    ])
    expect([first, second].map((task) => words().systemPrompt(task))).toEqual(['You weigh words.', null])
    expect(words().tools(first)).toMatchObject([
      { name: 'get_synonym_value', inputSchema: { required: ['synonym'] } },
      { name: 'extract_synonym_values', description: 'Hands values in.' },
    ])
  })

  it('answers calls and verifies them by its own code; what it refuses is the agent’s to correct', async () => {
    const [task] = await both()
    const { outcomes, done } = await played(words(), task, [
      ['get_synonym_value', { synonym: 'calm' }],
      ['get_synonym_value', { word: 'calm' }],
      values,
    ])
    expect(outcomes).toMatchObject([
      { status: 'ok', text: '{"synonym_value": 413}' },
      { status: 'error', text: expect.stringContaining('Field required') },
      { status: 'ok' },
    ])
    expect(await done()).toMatchObject({
      status: 'scored',
      reward: 1,
      trust: 'host',
      components: { reward: 1, accuracy: 1, set_overlap: 1 },
      evidence: expect.stringContaining('7 items'),
    })
  })

  it('scores an agent that said nothing as it is', async () => {
    const [task] = await both()
    const { done } = await played(words(), task, [], null)
    expect(await done()).toMatchObject({ status: 'scored', reward: 0, components: { set_overlap: 0 } })
  })
})

describe('rows of a resources server', () => {
  const directory = tempDir()

  const user = { role: 'user', content: 'Go.' }
  it.each([
    ['a conversation', { input: [user, user] }, /its input is a conversation \(user, user\)/],
    ['pictures', { input: [{ role: 'user', content: [{ type: 'input_image' }] }] }, /input/],
    ['two systems', { input: [{ role: 'system', content: 'A' }, user], instructions: 'B' }, /both instructions/],
    ['a tool that is no function', { input: 'Go.', tools: [{ type: 'web_search' }] }, /function/],
    [
      'a tool with the name of a route',
      { input: 'Go.', tools: [{ type: 'function', name: 'verify' }] },
      /tool "verify"/,
    ],
  ])('that hold %s are refused by name', async (_, params, said) => {
    await writeFile(join(directory, 'rows.jsonl'), JSON.stringify({ responses_create_params: params }))
    await writeFile(join(directory, 'one.json'), JSON.stringify({ rows: join(directory, 'rows.jsonl') }))
    await expect(words().load(join(directory, 'one.json'), { signal })).rejects.toThrow(said)
  })

  it('that are not there, or a module that is not, are named', async () => {
    await writeFile(join(directory, 'none.json'), JSON.stringify({ rows: 'gone.jsonl' }))
    await expect(words().load(join(directory, 'none.json'), { signal })).rejects.toMatchObject({ code: 'TASK_INVALID' })
    const gone = words(null, { app: 'no_such_servers.app' }).load(tasks, { signal })
    await expect(gone).rejects.toMatchObject({
      code: 'ENVIRONMENT_SERVER_FAILED',
      message: expect.stringContaining('no module no_such_servers.app'),
    })
  })
})

describe('a fault of a resources server', () => {
  it.each([
    ['does not start', /ended with exit code 1: no such dataset/],
    ['seeds none', /seeds no session \(500\)/],
  ])('that %s fails the set-up by name', async (fault, said) => {
    const [task] = await both()
    await expect(played(words(fault), task, [])).rejects.toMatchObject({
      code: 'ENVIRONMENT_SERVER_FAILED',
      family: 'infra',
      message: expect.stringMatching(said),
    })
  })

  it.each([
    ['dies', /ended with exit code 1/],
    ['hangs', /gave no answer within/],
  ])('that %s in a tool is infrastructure, and nothing is verified afterwards', async (fault, said) => {
    const [task] = await both()
    const broken = words(fault, { answerMs: fault === 'hangs' ? 1000 : 60_000 })
    const { outcomes, done, end } = await played(broken, task, [['get_synonym_value', { synonym: 'calm' }], values])
    expect(outcomes.map(({ status }) => status)).toEqual(['infra', 'infra'])
    expect(outcomes[0]?.text).toMatch(said)
    await expect(done()).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED', family: 'infra' })
    end()
  })

  it('that answers 500 in a tool is what the model hears, as of Gym: arguments can bring it about', async () => {
    const [task] = await both()
    const { outcomes, done, end } = await played(words('fails'), task, [
      ['get_synonym_value', { synonym: 'calm' }],
      values,
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['error', 'ok'])
    expect(outcomes[0]?.text).toMatch(/list index out of range/)
    expect(await done()).toMatchObject({ reward: expect.any(Number) })
    end()
  })

  it.each([
    ['judge', /says that its number means nothing: judge_failed: judge_failed: no route/],
    ['no number', /gave no number \(200\)/],
    ['raises', /gave no number \(500\): .*expected/],
  ])('in its verification (%s) is never a 0', async (fault, said) => {
    const [task] = await both()
    const { done, end } = await played(words(fault), task, [values])
    await expect(done()).rejects.toMatchObject({
      code: 'ENVIRONMENT_SERVER_FAILED',
      message: expect.stringMatching(said),
    })
    end()
  })

  it('with tools over MCP alone is refused, since an agent would find none', async () => {
    const [task] = await both()
    const { row } = task.data as { readonly row: { readonly responses_create_params: object } }
    const bare = { ...row, responses_create_params: { ...row.responses_create_params, tools: [] } }
    const without = { ...task, data: { ...(task.data as object), row: bare, tools: [] } }
    await expect(played(words('mcp'), without, [])).rejects.toMatchObject({ code: 'ENVIRONMENT_INVALID' })
    const { end } = await played(words('mcp'), task, [])
    end()
  })
})
