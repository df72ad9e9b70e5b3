import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { newId, type Task } from '../../src/core/index.ts'
import { defineTool, type Environment, registerEnvironments, terminal } from '../../src/envs/index.ts'
import {
  bareTask,
  defineHarness,
  type FailurePattern,
  qwenCode,
  reportExit,
  scriptHarness,
  shellHarness,
} from '../../src/rollout/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { containersOf, model, openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const hasDocker = await requireDocker()

describe('black-box harnesses', () => {
  let world: World
  let task: Task

  beforeAll(async () => {
    world = await openWorld()
    task = await terminalTask('log-forensics')
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test.runIf(hasDocker)(
    'Qwen Code, unmodified, solves a task in a box that reaches nothing but its model path',
    async () => {
      const { script } = await terminal.scripts.oracle(task)
      await world.script(task, script.steps)
      const runId = newId()
      const summary = await world.run({ runId, tasks: [task], harness: qwenCode() })
      expect(summary.rollouts).toMatchObject([
        { end: 'completed', verdict: { status: 'scored', reward: 1 }, taints: [] },
      ])
      expect(containersOf(runId)).toEqual([])
      const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
      const events = await world.store.recorder.events({ rolloutId })
      expect(events.find((event) => event.kind === 'exec' && event.role === 'harness')).toMatchObject({ exitCode: 0 })
      const [session] = await world.store.recorder.sessions({ rolloutId })
      const { calls } = await world.store.recorder.session(session?.id ?? '')
      expect(calls.every(({ intent }) => intent.lineage.userAgent?.startsWith('QwenCode/') === true)).toBe(true)
    },
  )

  test.runIf(hasDocker)(
    'Qwen Code finds the tools of an environment over MCP, and each call is told with the answer that asked for it',
    async () => {
      const { environment, receipts } = await receiptsTask()
      await world.script(receipts, (await environment.scripts.oracle(receipts)).script.steps)
      const summary = await world.run({ environment, tasks: [receipts], harness: qwenCode() })
      expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored', reward: 1 } }])
      const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
      const [session] = await world.store.recorder.sessions({ rolloutId })
      const { calls } = await world.store.recorder.session(session?.id ?? '')
      const asking = (tool: string) =>
        calls.find(({ commit }) => commit?.choices.some(({ message }) => message.includes(`mcp__receipts__${tool}`)))
      const events = await world.store.recorder.events({ rolloutId })
      expect(events.filter((event) => event.kind === 'tool_result')).toMatchObject([
        { tool: 'look_up', status: 'ok', callId: asking('look_up')?.intent.id },
        { tool: 'submit', status: 'ok', callId: asking('submit')?.intent.id },
      ])
      expect(asking('submit')).toBeDefined()
    },
  )

  /** Calls a tool over MCP as anything that speaks HTTP can, and prints the answer. */
  const curl = (name: string, input: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } })
    return `curl -sS -H 'content-type: application/json' -d '${body}' "$PADDOCK_MCP_URL"`
  }

  test.runIf(hasDocker)('a command of the user calls the tools of an environment with curl', async () => {
    const { environment, receipts } = await receiptsTask()
    const command = `${curl('look_up', { shop: 'Corner Bakery' })} && ${curl('submit', { answer: '17.05' })}`
    const summary = await world.run({ environment, tasks: [receipts], harness: shellHarness({ command }) })
    // It asked no model, so there is nothing of a policy to score.
    expect(summary.rollouts).toMatchObject([
      { end: 'completed', calls: 0, verdict: { status: 'unscorable', reward: null } },
    ])
    const { stdout } = await outputOf(world, summary.rollouts[0]?.rolloutId ?? '')
    expect(stdout).toContain('2026-03-05,Corner Bakery,12.75')
  })

  test.runIf(hasDocker)('a tool that fails by itself ends the rollout as infra, with no verdict, at once', async () => {
    const { environment, receipts } = await receiptsTask()
    const broken = defineTool({
      name: 'broken',
      description: 'Throws.',
      input: z.object({}),
      run: async () => {
        throw new TypeError('a fault of the author')
      },
    })
    const summary = await world.run({
      environment: { ...environment, tools: () => [broken] },
      tasks: [receipts],
      harness: shellHarness({ command: `${curl('broken', {})}; sleep 600` }),
      infraRetries: 0,
    })
    expect(summary.rollouts).toMatchObject([
      { end: 'infra', verdict: null, detail: expect.stringContaining('ENVIRONMENT_TOOL_FAILED') },
    ])
  })

  test.runIf(hasDocker)(
    'what a preset reads from the last words of its program is told by type beside the end',
    async () => {
      const preset = shellHarness({ command: 'echo "401 invalid_api_key" >&2; exit 7' })
      const parseResult: typeof preset.parseResult = (exit) => reportExit(exit, [refusedKey], null)
      const summary = await world.run({
        tasks: [task],
        harness: defineHarness({ ...preset, name: 'picky', parseResult }),
      })
      expect(summary.rollouts).toMatchObject([{ end: 'harness_crash', detail: 'its key was refused (exit 7)' }])
      const events = await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
      expect(events.find(({ kind }) => kind === 'rollout_end')).toMatchObject({ end: 'harness_crash', fault: 'auth' })
    },
  )

  test.runIf(hasDocker)('a command of the user reaches its model by URL alone, and nothing else', async () => {
    await world.script(task, [{ say: 'hello from the model' }])
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: task.instruction }] })
    const command = [
      'set -e',
      'test "$PADDOCK_PROMPT" = "$(cat)"',
      `curl -sS --fail -H 'content-type: application/json' -d @- "$OPENAI_BASE_URL/chat/completions" <<'BODY'`,
      body,
      'BODY',
      'curl -s -w " mcp %{http_code}\\n" "${OPENAI_BASE_URL%/v1}/mcp"',
      'curl -s -o /dev/null -w "tokenize %{http_code}\\n" "${OPENAI_BASE_URL%/v1}/tokenize"',
      'curl -s -o /dev/null -w "connect %{http_connect}\\n" --proxytunnel -x "${OPENAI_BASE_URL%/v1}" http://example.org:80/ || true',
    ].join('\n')
    const summary = await world.run({ tasks: [task], harness: shellHarness({ command }) })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', calls: 1, verdict: { reward: 0 } }])
    const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
    const events = await world.store.recorder.events({ rolloutId })
    const { stdout: text } = await outputOf(world, rolloutId)
    expect(text).toContain('hello from the model')
    expect(text).toMatch(/no MCP server.* mcp 404\ntokenize 404\nconnect 403\n/)
    expect(events.filter((event) => event.kind === 'egress')).toMatchObject([
      { host: 'example.org', port: 80, allowed: false },
    ])
  })

  test.runIf(hasDocker)(
    'a task with an allow-list reaches what it names and nothing else, and each try is an event',
    async () => {
      const own = Object.values(networkInterfaces())
        .flat()
        .find((one) => one?.family === 'IPv4' && !one.internal)?.address
      const web = createServer((_request, response) => void response.end('from outside')).listen(0, '0.0.0.0')
      await once(web, 'listening')
      try {
        const port = (web.address() as AddressInfo).port
        const data = task.data as { readonly agent: object }
        const listed: Task = { ...task, data: { ...data, agent: { ...data.agent, network: { allow: [`${own}/32`] } } } }
        const command = `curl -sS http://${own}:${port}/; curl -sS http://secret.example/`
        const summary = await world.run({ tasks: [listed], harness: shellHarness({ command }) })
        const rolloutId = summary.rollouts[0]?.rolloutId ?? ''
        expect((await outputOf(world, rolloutId)).stdout).toMatch(/^from outside.*no rule/s)
        const events = await world.store.recorder.events({ rolloutId })
        expect(events.filter((event) => event.kind === 'egress')).toMatchObject([
          { host: own, port, allowed: true, rule: `${own}/32` },
          { host: 'secret.example', port: 80, allowed: false, rule: 'no rule' },
        ])
      } finally {
        web.close()
      }
    },
  )

  test('a script on the host needs no box; what it started ends with it', async () => {
    const question = bareTask({ name: 'leap-day', instruction: 'How many days does February 2028 have?' })
    await world.script(question, [{ shell: 'echo 29' }, { say: 'It has 29 days.' }])
    const script = join(import.meta.dirname, '../../examples/harness/agent.mjs')
    const summary = await world.run({
      environment: null,
      sandbox: null,
      tasks: [question],
      harness: scriptHarness({ command: `sleep 600 & echo $! >&2; '${process.execPath}' '${script}'` }),
    })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', calls: 2, verdict: null, taints: [] }])
    expect(summary.groups).toMatchObject([{ size: 1, rewards: [], mean: null }])
    const output = await outputOf(world, summary.rollouts[0]?.rolloutId ?? '')
    expect(output.stdout).toBe('$ echo 29\nIt has 29 days.\n')
    const sleeper = Number(output.stderr)
    expect(sleeper).toBeGreaterThan(1)
    expect(isAlive(sleeper)).toBe(false)
  })

  test('a script on tasks of an environment asks nothing of Docker, and nothing is verified', async () => {
    await using nowhere = dockerProvider({ socketPath: '/nonexistent/docker.sock' })
    const summary = await world.run({ sandbox: nowhere, tasks: [task], harness: scriptHarness({ command: 'exit 0' }) })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: null }])
  })

  test('a script that runs too long is stopped by the clock of the agent', async () => {
    const question = bareTask({ name: 'forever', instruction: 'Wait.' })
    const summary = await world.run({
      environment: null,
      sandbox: null,
      tasks: [question],
      harness: scriptHarness({ command: 'trap "" TERM; echo waiting; sleep 600' }),
      budgets: { agentMs: 300 },
    })
    expect(summary.rollouts).toMatchObject([{ end: 'agent_timeout', calls: 0, verdict: null }])
  })
})

const refusedKey: FailurePattern = {
  pattern: /invalid_api_key/,
  end: 'harness_crash',
  fault: 'auth',
  detail: 'its key was refused',
}

async function receiptsTask(): Promise<{ readonly environment: Environment; readonly receipts: Task }> {
  const place = join(import.meta.dirname, '../../examples/environments/receipts')
  const registry = await registerEnvironments([join(place, 'environment.ts')])
  const environment = registry.get('receipts')
  const [receipts] = await environment.load(join(place, 'tasks/bakery.json'))
  if (receipts === undefined) throw new Error('no task')
  return { environment, receipts }
}

/** What the harness printed, from the blobs. */
async function outputOf(world: World, rolloutId: string): Promise<{ stdout: string; stderr: string }> {
  const events = await world.store.recorder.events({ rolloutId })
  const told = events.find((event) => event.kind === 'custom' && event.name === 'harness_output')
  const { streams } = (told as { data: { streams: { stream: 'stdout' | 'stderr'; sha256: string }[] } }).data
  const output = { stdout: '', stderr: '' }
  for (const { stream, sha256 } of streams) {
    output[stream] = new TextDecoder().decode(await world.store.blobs.get(sha256))
  }
  return output
}

/** A killed process whose parent has not asked for it yet counts as dead. */
function isAlive(pid: number): boolean {
  const { status, stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return status === 0 && !stdout.startsWith('Z')
}
