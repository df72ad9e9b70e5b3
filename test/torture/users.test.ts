/** Tasks with a user, in real boxes: agents that are asked again in their conversation, and agents that ask by a tool. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeTask, type Task } from '../../src/core/index.ts'
import { type Environment, registerEnvironments } from '../../src/envs/index.ts'
import { createProxy, openaiEngine, type Proxy } from '../../src/proxy/index.ts'
import {
  claudeCode,
  codex,
  type Harness,
  opencode,
  qwenCode,
  referenceAgent,
  type RunSummary,
  shellHarness,
  type RoleEngine,
} from '../../src/rollout/index.ts'
import { buildRows } from '../../src/trajectory/index.ts'
import { openOwnWorld, type World } from '../rollout/world.ts'
import { sized } from './size.ts'

const folder = join(import.meta.dirname, '../../examples/environments/orders')

/** A command-line agent without MCP of its own: it keeps its conversation in its home, and goes on with it when asked again. */
const agent = `
import json, os, sys, urllib.request
base, home = os.environ['OPENAI_BASE_URL'], os.environ['HOME'] + '/talk.json'
def post(url, body):
    headers = {'content-type': 'application/json', 'accept': 'application/json', 'authorization': 'Bearer x'}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
def mcp(method, params):
    return post(os.environ['PADDOCK_MCP_URL'], {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params})['result']
tools = [{'type': 'function', 'function': {'name': one['name'], 'description': one['description'], 'parameters': one['inputSchema']}} for one in mcp('tools/list', {})['tools']]
messages = json.load(open(home)) if len(sys.argv) > 1 else []
messages.append({'role': 'user', 'content': os.environ['PADDOCK_PROMPT']})
while True:
    message = post(base + '/chat/completions', {'model': os.environ['OPENAI_MODEL'], 'messages': messages, 'tools': tools})['choices'][0]['message']
    messages.append(message)
    if not message.get('tool_calls'):
        break
    for call in message['tool_calls']:
        said = mcp('tools/call', {'name': call['function']['name'], 'arguments': json.loads(call['function']['arguments'])})
        messages.append({'role': 'tool', 'tool_call_id': call['id'], 'content': said['content'][0]['text']})
json.dump(messages, open(home, 'w'))
print(message['content'])
`
const line = (more: string) => `cat > /tmp/agent.py <<'END'\n${agent}\nEND\npython3 /tmp/agent.py ${more}`
const again = () => shellHarness({ command: line(''), again: line('again') })

describe('a task with a user', () => {
  let world: World
  let orders: Environment
  let kettle: Task
  beforeAll(async () => {
    world = await openOwnWorld()
    orders = (await registerEnvironments([join(folder, 'environment.ts')])).get('orders')
    const [task] = await orders.load(join(folder, 'tasks/kettle.json'), {})
    if (task === undefined) throw new Error('no task')
    kettle = task
  })
  afterAll(() => world[Symbol.asyncDispose]())

  async function run(harness: Harness, task: Task, more: object = {}): Promise<RunSummary> {
    const { steps } = (await orders.scripts.oracle(task)).script
    await world.script(
      task,
      steps.map((step) => ('say' in step ? { answer: step.say } : step)),
    )
    return world.run({ tasks: [task], environment: orders, harness, infraRetries: 0, ...more })
  }

  async function storedOf({ rollouts: [rollout] }: RunSummary) {
    const { recorder } = world.store
    const rolloutId = rollout?.rolloutId ?? ''
    const sessions = await recorder.sessions({ rolloutId })
    const logs = await Promise.all(sessions.map(({ id }) => recorder.session(id)))
    const events = await recorder.events({ rolloutId })
    return { logs, events, turns: events.flatMap((event) => (event.kind === 'user_turn' ? [event] : [])) }
  }

  const asked = [again(), referenceAgent()]
  test.each(
    sized([...asked, claudeCode(), codex(), opencode()], asked).map((harness) => ({ harness, name: harness.name })),
  )('$name is asked again with what the user says, in one conversation that trains as one row', async ({ harness }) => {
    const summary = await run(harness, kettle)
    const [ended] = summary.rollouts
    expect(ended, ended?.detail).toMatchObject({ end: 'completed', taints: [], verdict: { reward: 1 } })
    const { logs, turns } = await storedOf(summary)
    expect(turns.map(({ said, reply, over }) => [said, reply, over])).toEqual([
      [
        'Of course. Which order is it, and what shall be changed?',
        'The kettle. I want a red one instead of the blue one.',
        null,
      ],
      ['Order 1001 is now a red kettle. The price stays 24.50.', 'Thank you, goodbye.', null],
      ['Goodbye.', null, 'record'],
    ])
    const [log] = logs
    if (log === undefined) throw new Error('no log')
    const main = log.calls.filter(({ intent }) => intent.callClass === 'main')
    expect(main).toHaveLength(5)
    const { rows } = buildRows(log, { rolloutId: 'r', groupId: 'g', taskDigest: 'd' })
    // Its words are context of the last row, and the agent's of all turns are trained there.
    const trained = rows.map(({ mask }) => mask.reduce((sum, one) => sum + one, 0))
    const forks = main.reduce((sum, { commit }) => sum + (commit?.forks.length ?? 0), 0)
    expect(rows.filter((_, at) => (trained[at] ?? 0) > 0)).toHaveLength(1 + forks)
  })

  const tools = [shellHarness({ command: line('') })]
  test.each(sized([...tools, qwenCode()], tools).map((harness) => ({ harness, name: harness.name })))(
    '$name, which cannot be asked again, asks by the tool',
    async ({ harness }) => {
      const { steps } = (await orders.scripts.oracle(kettle)).script
      await world.script(
        kettle,
        steps.map((step, at) =>
          'say' in step && at < steps.length - 1 ? { tool: 'ask_user', args: { message: step.say } } : step,
        ),
      )
      const summary = await world.run({ tasks: [kettle], environment: orders, harness, infraRetries: 0 })
      const [ended] = summary.rollouts
      expect(ended, ended?.detail).toMatchObject({ end: 'completed', taints: [], verdict: { reward: 1 } })
      const { turns, events } = await storedOf(summary)
      expect(turns.map(({ over }) => over)).toEqual([null, null])
      const results = events.flatMap((event) =>
        event.kind === 'tool_result' ? [`${event.tool}: ${event.result}`] : [],
      )
      expect(results[0]).toBe('ask_user: The kettle. I want a red one instead of the blue one.')
    },
  )

  describe('who is simulated by a model', () => {
    let server: Server
    let proxy: Proxy
    let listener: Awaited<ReturnType<Proxy['listen']>>
    let said: (talk: readonly { readonly content: string }[]) => string | number
    let played: Task
    beforeAll(async () => {
      server = createServer(
        (request, response) =>
          void (async () => {
            if (request.method !== 'POST') return void response.writeHead(404).end()
            const { messages } = (await json(request)) as { messages: { content: string }[] }
            const content = said(messages)
            response.writeHead(typeof content === 'number' ? content : 200, { 'content-type': 'application/json' })
            if (typeof content === 'number') return void response.end('{"error":{"message":"out"}}')
            const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
            const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
            response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices, usage }))
          })(),
      )
      await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      proxy = createProxy({ recorder: world.store.recorder, engine: openaiEngine({ url }) })
      listener = await proxy.listen({ port: 0 })
      const data = kettle.data as object
      const customer = { persona: 'Ada Lind', goal: 'A red kettle. Wishword: heliotrope.' }
      played = makeTask({ ...kettle, name: 'played', data: { ...data, customer } })
    })
    afterAll(async () => {
      await listener.close()
      await proxy.close()
      server.closeAllConnections()
      server.close()
    })
    const userEngine = async (): Promise<RoleEngine> => ({ proxy, origin: listener.origin, model: 'm' })

    test('is told its goal, which the agent finds nowhere, and its tokens are in a bucket of their own', async () => {
      said = (talk) => (talk.length === 2 ? 'The kettle, in red.' : '###STOP###')
      const look = `(env; paddock-tool; cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -2000k -exec grep -l 'helio''trope' {} +) > /tmp/seen 2>/dev/null; grep -c 'helio''trope' /tmp/seen; grep -c '^OPENAI_MODEL' /tmp/seen; `
      const summary = await run(shellHarness({ command: look + line(''), again: line('again') }), played, {
        userEngine,
      })
      const [ended] = summary.rollouts
      expect(ended, ended?.detail).toMatchObject({ end: 'completed', verdict: { reward: 1 } })
      const { logs, turns, events } = await storedOf(summary)
      expect(turns).toMatchObject([
        { reply: 'The kettle, in red.', by: 'model' },
        { reply: null, over: 'left' },
      ])
      const first = events.find((event) => event.kind === 'exec' && event.role === 'harness')
      expect(first?.kind === 'exec' ? first.stdout.split('\n').slice(0, 2) : null).toEqual([
        '0',
        expect.stringMatching(/^[1-9]/),
      ])
      const user = logs.find(({ session }) => session.role === 'user_simulator')
      const others = logs.filter(({ session }) => session.role === 'agent')
      expect(Buffer.from(user?.calls[0]?.intent.body ?? []).toString()).toContain('heliotrope')
      for (const { calls } of others) {
        for (const { intent } of calls) expect(Buffer.from(intent.body).toString()).not.toContain('heliotrope')
      }
      expect(turns[0]?.callId).toBe(user?.calls[0]?.intent.id)
      expect(ended?.calls).toBe(others[0]?.calls.length)
    })

    test('whose model is out ends the rollout as infra, never with a number, by turns and by the tool', async () => {
      said = () => 400
      for (const harness of [again(), referenceAgent()]) {
        const summary = await run(harness, played, { userEngine })
        expect(summary.rollouts).toMatchObject([
          { end: 'infra', verdict: null, detail: expect.stringContaining('USER_FAILED') },
        ])
      }
      await world.script(played, [{ tool: 'ask_user', args: { message: 'Which one?' } }, { say: 'Well.' }])
      const options = { tasks: [played], environment: orders, infraRetries: 0, userEngine }
      const summary = await world.run({ ...options, harness: shellHarness({ command: line('') }) })
      expect(summary.rollouts).toMatchObject([
        { end: 'infra', verdict: null, detail: expect.stringContaining('USER_FAILED') },
      ])
    })

    test('is refused before any rollout where nothing simulates it, or where the harness cannot speak to it', async () => {
      const options = { tasks: [played], environment: orders, infraRetries: 0 }
      await expect(world.run({ ...options, harness: again() })).rejects.toMatchObject({ code: 'USER_ENGINE_NONE' })
      const byTurns: Environment = { ...orders, user: () => ({ by: 'record', way: 'turns', maxTurns: 2, replies: [] }) }
      const harness = shellHarness({ command: 'true' })
      await expect(world.run({ ...options, environment: byTurns, harness })).rejects.toMatchObject({
        code: 'USER_UNFIT',
        message: expect.stringContaining('cannot be asked again'),
      })
    })
  })
})

test('results that come later are asked for by an agent in the box, over MCP', async () => {
  await using world = await openOwnWorld()
  const place = join(import.meta.dirname, '../../examples/environments/assays')
  const assays = (await registerEnvironments([join(place, 'environment.ts')])).get('assays')
  const [task] = await assays.load(join(place, 'tasks'), {})
  if (task === undefined) throw new Error('no task')
  const { steps } = (await assays.scripts.oracle(task)).script
  await world.script(task, steps)
  const options = { tasks: [task], environment: assays, infraRetries: 0 }
  for (const harness of [shellHarness({ command: line('') }), referenceAgent()]) {
    const summary = await world.run({ ...options, harness })
    expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { reward: 1 } }])
    const events = await world.store.recorder.events({ rolloutId: summary.rollouts[0]?.rolloutId ?? '' })
    const came = events.flatMap((event) => (event.kind === 'deferred_result' ? [`${event.handle} ${event.came}`] : []))
    expect(came).toEqual(['job-1 asked', 'job-2 lost', 'job-3 asked', 'job-4 asked'])
  }
  // One that is not asked for is told as well, and neither keeps the attempt open.
  await world.script(task, [...steps.slice(0, 1), { say: 'I leave it at that.' }])
  const left = await world.run({ ...options, harness: shellHarness({ command: line('') }) })
  const events = await world.store.recorder.events({ rolloutId: left.rollouts[0]?.rolloutId ?? '' })
  expect(events.find((event) => event.kind === 'deferred_result')).toMatchObject({ handle: 'job-1', came: 'unread' })
})
