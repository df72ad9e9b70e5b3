/** Environments of others, unmodified, on OpenEnv's own servers: one from the index by the guide's own commands, one with MCP tools. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, openEnvEnvironment, sql } from '../../src/envs/index.ts'
import { qwenCode, referenceAgent } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openOwnWorld } from '../rollout/world.ts'
import { guidedRewards } from './guided.ts'
import { cache } from './vllm.ts'

const root = join(import.meta.dirname, '../..')
const published = join(cache, 'dipg/bin/python')
const openenv = join(cache, 'openenv/bin/python')
const recorded = join(root, 'test/lab/openenv')

const directory = tempDir()

describe.skipIf(cache === '' || !existsSync(published))('openenv-dipg-safety 0.1.67 from the package index', () => {
  it('is run, scored by its own code and exported by the commands of the guide', async () => {
    const place = join(root, 'examples/environments/openenv')
    const guide = 'environments-of-others.md'
    const rewards = await guidedRewards({ guide, place, python: published, rows: 'dipg-rows', directory })
    const { data } = JSON.parse(await readFile(join(place, 'tasks/survival.json'), 'utf8'))
    const [{ args: good }, { args: bad }] = [data.oracle[0], data.cheats[0][0]]
    const [own = 0, ownOfBad = 0] = ownRewards([good.llm_response, bad.llm_response])
    expect(own).not.toBe(ownOfBad)
    expect(rewards).toEqual([own, own, own, own])

    const [environment, task] = await exampleTask(place)
    await using world = await openOwnWorld()
    await world.script(task, data.cheats[0])
    const { rollouts } = await world.run({ environment, tasks: [task], harness: referenceAgent() })
    expect(rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: ownOfBad } }])
  })

  const settings = {
    DIPG_DATASET_PATH: join(root, 'examples/environments/openenv/questions.jsonl'),
    POSTGRES_URL: 'sqlite://',
    HF_HUB_OFFLINE: '1',
  }

  /** What the class of the environment says of answers, without a server and without Paddock. */
  function ownRewards(answers: readonly string[]): readonly number[] {
    const { status, stdout, stderr } = spawnSync(published, ['-B', join(import.meta.dirname, 'openenv_direct.py')], {
      input: answers.map((answer) => JSON.stringify(answer)).join('\n'),
      encoding: 'utf8',
      env: { ...process.env, ...settings },
    })
    expect(status, stderr).toBe(0)
    return stdout.trim().split('\n').map(Number)
  }

  async function exampleTask(place: string): Promise<readonly [Environment, Task]> {
    const server = { command: [published, '-m', 'med_safety_gym.app'], env: settings }
    const environment = openEnvEnvironment({ name: 'dipg', version: '0.1.67', server })
    const [task] = await environment.load(join(place, 'tasks'))
    if (task === undefined) throw new Error('no task')
    return [environment, task]
  }
})

describe.skipIf(cache === '' || !existsSync(openenv))('openenv 0.10.0', () => {
  const lock = (): Environment =>
    openEnvEnvironment({
      name: 'lock',
      version: '1',
      server: { command: [openenv, '-B', join(import.meta.dirname, 'openenv_lock.py'), '{port}'] },
    })

  it('says what the test server of the contract says', async () => {
    const { startServer } = await import('../../src/envs/side-server/index.ts')
    const command = [openenv, '-B', join(import.meta.dirname, 'openenv_lock.py'), '{port}']
    await using server = await startServer({ command }, new AbortController().signal)
    const frames = JSON.parse(await readFile(join(recorded, 'frames.json'), 'utf8'))
    const schema = (await (await fetch(`${server.origin}/schema`)).json()) as { readonly action: object }
    expect(schema.action).toEqual(frames.schema.action)
    const socket = new WebSocket(`${server.origin.replace('http', 'ws')}/ws`)
    await once(socket, 'open')
    for (const { ask, answer } of frames.exchanges) {
      const heard = once(socket, 'message')
      socket.send(JSON.stringify(ask))
      const [{ data }] = (await heard) as [{ readonly data: string }]
      expect(JSON.parse(data)).toEqual(answer)
    }
    socket.close()
  })

  it('offers its MCP tools to Qwen Code in a box, and its own rewards are the rollout’s', async () => {
    await using world = await openOwnWorld()
    const environment = lock()
    const [task] = (await environment.load(join(recorded, 'tasks'))) as [Task]
    const code = (value: number) => ({ tool: 'try_code', args: { code: value } })
    await world.script(task, [{ tool: 'look', args: {} }, code(5), code(900), code(137), { say: 'It is open.' }])
    const { rollouts } = await world.run({ environment, tasks: [task], harness: qwenCode() })
    expect(rollouts).toMatchObject([{ end: 'completed', taints: [], verdict: { status: 'scored', reward: 0.5 } }])
  })
})

describe.skipIf(cache === '' || !existsSync(openenv))(
  'tasks of the sql environment, served the OpenEnv way by the command',
  () => {
    let owner: ReturnType<typeof spawn>
    let url: string
    let task: Task
    let calls: readonly { readonly tool_name: string; readonly arguments: object }[]
    beforeAll(async () => {
      const place = join(root, 'examples/tasks/sql')
      owner = spawn(join(root, 'paddock'), ['openenv', place, '--env', 'sql', '--port', '0', '--json'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const lines = createInterface({ input: owner.stdout as Readable })
      const [line] = (await once(lines, 'line')) as [string]
      ;({ url } = JSON.parse(line) as { readonly url: string })
      ;[task] = (await sql.load(place)) as [Task]
      const { script } = await sql.scripts.oracle(task)
      calls = script.steps.flatMap((step) => ('tool' in step ? [{ tool_name: step.tool, arguments: step.args }] : []))
    })
    afterAll(async () => {
      const ended = once(owner, 'exit')
      owner.kill('SIGTERM')
      await ended
    })

    it.each([
      ['openenv 0.10.0', 'openenv'],
      ['openenv-core 0.3.0', 'dipg'],
    ])('are worked on by the generic client of %s', async (_name, venv) => {
      const told = await worked(join(cache, venv, 'bin/python'), 'generic')
      expect(told).toMatchObject({
        start: { task: task.name, instruction: sql.userPrompt(task) },
        tools: [...sql.tools(task).map(({ name }) => name), 'submit'],
        errors: calls.map(() => null),
        steps: calls.length,
        // Work that is handed in, and none.
        rewards: [null, 1, 0],
        done: [false, true, false],
      })
    })

    it('are worked on by the MCP client, which shares its session with a WebSocket', async () => {
      const told = await worked(openenv, 'mcp')
      expect(told).toMatchObject({
        tools: [...sql.tools(task).map(({ name }) => name), 'submit'],
        answers: calls.map(() => expect.any(String)),
        steps: calls.length + 1,
        rewards: [null, 1],
        done: [false, true],
      })
    })

    it('are trained on by TRL’s own white-box loop', async () => {
      const told = await outputOf(openenv, ['openenv_white_box.py', url, join(cache, 'models/qwen3-tiny')])
      const last = told.trimEnd().split('\n').at(-1) ?? ''
      // One of two rollouts solved the task, and the other gave up.
      expect(JSON.parse(last)).toEqual({
        moved: true,
        'rewards/Sql/mean': 0.5,
        'rewards/Sql/std': expect.closeTo(Math.SQRT1_2),
        'tools/call_frequency': calls.length / 2,
        'tools/failure_frequency': 0,
      })
    })

    async function worked(python: string, client: string): Promise<unknown> {
      return JSON.parse(await outputOf(python, ['openenv_served.py', url, client]))
    }

    /** What a script beside this one prints when it is told the task and what solves it. */
    async function outputOf(python: string, [script = '', ...args]: readonly string[]): Promise<string> {
      const child = spawn(python, ['-B', join(import.meta.dirname, script), ...args], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      child.stdin.end(JSON.stringify({ task: task.name, calls }))
      return text(child.stdout)
    }
  },
)
