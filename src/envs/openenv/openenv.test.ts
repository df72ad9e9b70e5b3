/** An environment of somebody else's behind the contract, its server played from what OpenEnv's own said; faults of every kind. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { isPaddockError, type Task } from '../../core/index.ts'
import { type Box, dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import type { Environment, Tool, ToolOutcome } from '../contract.ts'
import { type OpenEnvOptions, openEnvEnvironment } from './index.ts'

const recorded = join(import.meta.dirname, '../../../test/lab/openenv')
const tasks = join(recorded, 'tasks')
const fixture = join(recorded, 'replaying.ts')
const signal = new AbortController().signal

const lock = (fault = '', more: Partial<OpenEnvOptions> = {}): Environment =>
  openEnvEnvironment({
    name: 'lock',
    version: '1',
    server: { command: [process.execPath, fixture, '{port}', fault] },
    ...more,
  })

/** Its box is nobody's: what is looked at here are the calls of the tools. */
function nobodysBox(): { readonly box: Box; readonly end: () => void } {
  const died = Promise.withResolvers<never>()
  const box = { died: died.promise, killBackground: async () => undefined, freeze: async () => undefined }
  return { box: box as unknown as Box, end: () => died.resolve({ why: 'destroyed', detail: '' } as never) }
}

/** Set up, then each call in order. */
async function played(environment: Environment, task: Task, calls: readonly (readonly [string, object])[]) {
  const { box, end } = nobodysBox()
  const context = { task, attempt: { id: 'one' }, box, signal, emit: () => undefined }
  await environment.setup(context)
  const outcomes: ToolOutcome[] = []
  for (const [name, args] of calls) {
    const tool = environment.tools(task).find((one) => one.name === name) as Tool
    outcomes.push(await tool.run(context, args))
  }
  const done = async () => {
    const artifacts = await environment.collect(context)
    const openBox = () => Promise.reject(new Error('no box is needed'))
    return environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
  }
  return { outcomes, done, end }
}

async function lockTask(environment: Environment): Promise<Task> {
  const [task] = await environment.load(tasks, { signal })
  return task as Task
}

describe.runIf(await requireDocker())('an environment on an OpenEnv server keeps the environment contract', () => {
  environmentContract({ environment: lock(), tasks, make: async () => dockerProvider() })
})

describe('a task', () => {
  it('offers the tools that the server lists, word for word', async () => {
    const environment = lock()
    const task = await lockTask(environment)
    expect(environment.tools(task)).toMatchObject([
      { name: 'look', description: 'Says how many digits the code has.' },
      { name: 'try_code', inputSchema: { properties: { code: { type: 'integer' } }, required: ['code'] } },
    ])
  })

  it('earns what the environment says, step by step; what it refuses is the agent’s to correct', async () => {
    const environment = lock()
    const task = await lockTask(environment)
    const { outcomes, done } = await played(environment, task, [
      ['look', {}],
      ['try_code', { code: 5 }],
      ['try_code', { code: 'five' }],
      ['try_code', { code: 137 }],
      ['try_code', { code: 137 }],
    ])
    expect(outcomes).toMatchObject([
      { status: 'ok', text: '{"digits":3}' },
      { status: 'ok', text: 'higher' },
      { status: 'error', text: expect.stringContaining('valid integer') },
      { status: 'ok', text: 'open\n[The episode is over.]' },
      { status: 'error', text: expect.stringContaining('is over') },
    ])
    expect(await done()).toMatchObject({ status: 'scored', reward: 0.5, trust: 'host' })
  })

  it('may count its last reward alone', async () => {
    const environment = lock('', { reward: 'last' })
    const task = await lockTask(environment)
    const { done } = await played(environment, task, [
      ['try_code', { code: 5 }],
      ['try_code', { code: 137 }],
    ])
    expect(await done()).toMatchObject({ status: 'scored', reward: 1 })
  })

  it('whose reset starts elsewhere than when it was loaded is not begun', async () => {
    const environment = lock()
    const task = await lockTask(environment)
    const other = { ...task, data: { ...(task.data as object), start: 'a door' } }
    await expect(played(environment, other, [])).rejects.toMatchObject({
      code: 'ENVIRONMENT_SETUP_FAILED',
      family: 'infra',
    })
  })
})

describe('a server', () => {
  it.each([
    ['exits at once', /ended with exit code 3: no such dataset/],
    ['is never healthy', /was not healthy within/],
  ])('that %s fails the set-up by name', async (fault, words) => {
    const server = { command: [process.execPath, fixture, '{port}', fault], startMs: 2000 }
    const task = await lockTask(lock())
    const error: unknown = await played(lock('', { server }), task, []).catch((reason: unknown) => reason)
    expect(isPaddockError(error) && `${error.family} ${error.code}`).toBe('infra ENVIRONMENT_SERVER_FAILED')
    expect(String(error)).toMatch(words)
  })

  it('whose program is not there fails the set-up by name', async () => {
    const task = await lockTask(lock())
    const gone = lock('', { server: { command: ['no-such-program', '{port}'] } })
    await expect(played(gone, task, [])).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED' })
  })

  it.each([
    ['dies', /ended with exit code 1|closed the session/],
    ['hangs', /gave no answer within/],
    ['closes', /closed the session/],
    ['answers nonsense', /what the protocol does not know/],
    ['fails', /EXECUTION_ERROR: list index out of range/],
  ])('that %s in a step is infrastructure, and nothing is scored afterwards', async (fault, words) => {
    const task = await lockTask(lock())
    const broken = lock(fault, { answerMs: fault === 'hangs' ? 5000 : 60_000 })
    const { outcomes, done, end } = await played(broken, task, [
      ['try_code', { code: 5 }],
      ['look', {}],
      ['try_code', { code: 137 }],
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['ok', 'infra', 'infra'])
    expect(outcomes[1]?.text).toMatch(words)
    await expect(done()).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED', family: 'infra' })
    end()
  })

  it('that dies after the last step, when nobody looks, is no reward either', async () => {
    const task = await lockTask(lock())
    const { outcomes, done, end } = await played(lock('dies unseen'), task, [['try_code', { code: 137 }]])
    expect(outcomes).toMatchObject([{ status: 'ok' }])
    await expect(done()).rejects.toMatchObject({ family: 'infra' })
    end()
  })

  it('that has no place for another session says so, and it is infrastructure', async () => {
    const task = await lockTask(lock())
    await using server = await running()
    const shared = lock('', { server: { url: server.url } })
    const first = await played(shared, task, [])
    await expect(played(shared, task, [])).rejects.toMatchObject({ code: 'ENVIRONMENT_SERVER_FAILED', family: 'infra' })
    expect(await first.done()).toMatchObject({ reward: 0 })
    // It was let go of, so there is a place again.
    const again = await played(shared, task, [['try_code', { code: 137 }]])
    expect(await again.done()).toMatchObject({ reward: 1 })
  })
})

describe('the processes of a server', () => {
  const directory = tempDir()

  const withPids = (file: string) => ({ command: [process.execPath, fixture, '{port}'], env: { PIDS: file } })
  const pidsOf = async (file: string): Promise<readonly number[]> => {
    const pids: readonly number[] = JSON.parse(await readFile(file, 'utf8'))
    expect(pids.map(isAlive)).toEqual([true, true])
    return pids
  }

  it.each(['collected', 'box died'] as const)('are gone once the attempt is over: %s', async (how) => {
    const file = join(directory, `${how}.json`)
    const environment = lock('', { server: withPids(file) })
    const task = await lockTask(lock())
    const { done, end } = await played(environment, task, [])
    const pids = await pidsOf(file)
    if (how === 'collected') await done()
    else end()
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false])
  })

  it('are gone when Paddock was killed', async () => {
    const file = join(directory, 'killed.json')
    const program = `
      const { startServer } = await import(${JSON.stringify(join(import.meta.dirname, '../side-server/index.ts'))})
      await startServer(${JSON.stringify(withPids(file))}, new AbortController().signal)
      console.log('serving')`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(owner.stdout, 'data')
    const pids = await pidsOf(file)
    owner.kill('SIGKILL')
    await expect.poll(() => pids.map(isAlive)).toEqual([false, false])
  })
})

/** A killed process that nobody has asked for yet counts as dead. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

/** The fixture, started by somebody else. */
async function running(): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, [fixture, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { port }: { port: number } = JSON.parse(line)
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
