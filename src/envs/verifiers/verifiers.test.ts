/** Environments of verifiers behind the contract: their own loop, their own numbers, and faults of every kind. `npm run real` has the real package. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Task } from '../../core/index.ts'
import { type Box, dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { Environment, Tool, ToolOutcome } from '../contract.ts'
import { verifiersEnvironment, type VerifiersOptions } from './index.ts'

const lab = join(import.meta.dirname, '../../../test/lab/verifiers')
const tasks = join(lab, 'tasks')
const signal = new AbortController().signal

const books = (kind = 'tools', more: Partial<VerifiersOptions> = {}): Environment =>
  verifiersEnvironment({
    name: 'books',
    version: '1',
    load: 'counting-house',
    args: { kind },
    python: 'python3',
    env: { PYTHONPATH: `${lab}:${join(lab, 'stand_in')}` },
    ...more,
  })

type Call = readonly [string, object]

/** Set up, each call in order, and what the conversation ended with. Its box is nobody's. */
async function played(environment: Environment, task: Task, calls: readonly Call[], words: string | null = null) {
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
    const artifacts = await environment.collect({ ...context, lastSaid: async () => words })
    const openBox = () => Promise.reject(new Error('no box is needed'))
    return environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
  }
  return { outcomes, done, end: () => died.resolve({ why: 'destroyed', detail: '' } as never) }
}

const both = (kind = 'tools') => books(kind).load(tasks, { signal }) as Promise<readonly [Task, Task]>

describe.runIf(await requireDocker())('an environment of verifiers keeps the environment contract', () => {
  environmentContract({ environment: books(), tasks, make: async () => dockerProvider() })
})

describe('an environment of verifiers', () => {
  it('has the rows of its data set as tasks, and its tools', async () => {
    const [first, second] = await both()
    expect([first, second]).toMatchObject([
      { name: 'books-0', split: 'train', instruction: 'What do Ann and Bob have together?' },
      { name: 'books-1', instruction: 'What does Ann have?' },
    ])
    expect(books().systemPrompt(first)).toBe('You keep the books.')
    expect(books().tools(first)[0]).toMatchObject({
      name: 'balance',
      description: 'Says what an account holds.',
      inputSchema: { required: ['name'] },
    })
  })

  it('answers calls and scores the conversation by its rubric; what its tools raise is the agent’s to correct', async () => {
    const [task] = await both()
    const { outcomes, done } = await played(
      books(),
      task,
      [
        ['balance', { name: 'ann' }],
        ['balance', { name: 'zoe' }],
      ],
      '42',
    )
    expect(outcomes).toMatchObject([
      { status: 'ok', text: '17' },
      { status: 'ok', text: "'zoe'" },
    ])
    expect(await done()).toMatchObject({
      status: 'scored',
      reward: 1,
      trust: 'host',
      components: { right: 1, looked: 2 },
      evidence: expect.stringContaining('it ended by no_tools_called'),
    })
  })

  it('scores an agent that said nothing as it is', async () => {
    const [task] = await both()
    const { done } = await played(books(), task, [['balance', { name: 'ann' }]])
    expect(await done()).toMatchObject({ status: 'scored', reward: 0, components: { looked: 1 } })
  })

  it('ends an episode by its own rules, and takes no acts afterwards', async () => {
    const [task] = await both()
    const ann = ['balance', { name: 'ann' }] as const
    const { outcomes, done } = await played(books(), task, [ann, ann, ann, ann, ann], '42')
    expect(outcomes.slice(2)).toMatchObject([
      { status: 'ok', text: '17' },
      { status: 'ok', text: '[The episode is over.]' },
      { status: 'error', text: expect.stringContaining('is over') },
    ])
    // Its last message is a call that it did not answer any more.
    expect(await done()).toMatchObject({ reward: 0, evidence: expect.stringContaining('max_turns_reached') })
  })

  it('that answers words offers a way to say some', async () => {
    const [, task] = await both('guess')
    const guess = books('guess')
    expect(guess.tools(task).map(({ name }) => name)).toEqual(['say'])
    const { outcomes, done } = await played(guess, task, [
      ['say', { text: '12' }],
      ['say', {}],
      ['say', { text: '17' }],
    ])
    expect(outcomes).toMatchObject([{ text: 'No. Again.' }, { status: 'error' }, { text: '[The episode is over.]' }])
    expect(await done()).toMatchObject({ reward: 1 })
    const other = await played(guess, task, [['say', { text: '12' }]], '13')
    expect(await other.done()).toMatchObject({ reward: 0, evidence: expect.stringContaining('prompt_too_long') })
  })

  it.each([
    ['judged', /asks a model to judge, and none is given. Fix: give `judge/],
    ['together', /scores several rollouts beside each other/],
  ])('that is %s is refused by name', async (kind, words) => {
    const refused = books(kind).load(tasks, { signal })
    await expect(refused).rejects.toMatchObject({ code: 'ENVIRONMENT_INVALID', message: expect.stringMatching(words) })
  })

  it('that cannot be loaded, or a Python that is not there, says what it said', async () => {
    const gone = books('tools', { load: 'no-such-house' }).load(tasks, { signal })
    await expect(gone).rejects.toThrow(/ended with exit code 1.*no_such_house/s)
    const python = books('tools', { python: 'no-such-python' }).load(tasks, { signal })
    await expect(python).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED', family: 'infra' })
  })

  it('that begins elsewhere than when it was loaded is not begun', async () => {
    const [task] = await both()
    const other = { ...task, data: { ...(task.data as object), user: 'What does Bob have?' } }
    await expect(played(books(), other, [])).rejects.toMatchObject({
      code: 'ENVIRONMENT_SETUP_FAILED',
      family: 'infra',
    })
  })
})

describe('a fault of an environment is infrastructure', () => {
  it.each([
    ['drop_dead', /ended with exit code 7/, 60_000],
    ['hang', /gave no answer within 1500 ms/, 1500],
  ])('in a tool: %s', async (tool, words, answerMs) => {
    const [task] = await both()
    const broken = books('tools', { answerMs })
    const { outcomes, done, end } = await played(
      broken,
      task,
      [
        [tool, { name: 'ann' }],
        ['balance', { name: 'ann' }],
      ],
      '42',
    )
    expect(outcomes.map(({ status }) => status)).toEqual(['infra', 'infra'])
    expect(outcomes[0]?.text).toMatch(words)
    await expect(done()).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED', family: 'infra' })
    end()
  })

  it('in a reward function, which verifiers would count as 0', async () => {
    const [task] = await both('broken')
    const { done, end } = await played(books('broken'), task, [], '42')
    await expect(done()).rejects.toMatchObject({
      code: 'ENVIRONMENT_SERVER_FAILED',
      message: expect.stringContaining('broken raised ValueError: no such ledger'),
    })
    end()
  })
})
