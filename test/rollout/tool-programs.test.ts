/** The three faces of one tool: a program in the box, the MCP server, and the schema; one definition, one record. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, runToolCall, searchEnvironment } from '../../src/envs/index.ts'
import { shellHarness } from '../../src/rollout/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, type World } from './world.ts'

const script = String.raw`
set -eu
# What an agent does is scored where the model answered it.
curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d '{"model":"'"$OPENAI_MODEL"'","messages":[{"role":"user","content":"x"}]}' >/dev/null
paddock-tool | cut -f1 | sort | tr '\n' ' ' | grep -qx 'answer open search '
query='{"query": "Mendvald Printing House founded by", "topk": 2}'
call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":'$query'}}'
byName=$(search --json "$query")
byProgram=$(printf %s "$query" | paddock-tool search --json -)
byServer=$(curl -s "$PADDOCK_MCP_URL" -H 'content-type: application/json' -d "$call" | jq -r '.result.content[0].text')
[ "$byName" = "$byServer" ] && [ "$byProgram" = "$byServer" ]
fails() { want=$1; shift; code=0; "$@" >/dev/null 2>&1 || code=$?; [ "$code" = "$want" ] || { echo "$* gave $code, not $want"; exit 9; }; }
fails 1 open --json '{"id": "nowhere"}'
fails 1 search --json '{"query": 7}'
fails 2 search --json '{"query": "x"}, "id": 2'
fails 2 search --json ']'
fails 2 search --jso '{}'
fails 3 paddock-tool no_such_tool
search --json '{"query": "Delia Stoaxdrusk born"}' >/dev/null
search --json '{"query": "Wexholm town region"}' >/dev/null
answer --json '{"answer": "Deirdkrevia", "citations": ["d01824", "d02067", "d00223"]}'
`

describe.runIf(await requireDocker())('tools as programs of the box', () => {
  let directory: string
  let world: World
  let environment: Environment
  let task: Task
  beforeAll(async () => {
    directory = tempDir()
    world = await openWorld()
    environment = searchEnvironment({ directory })
    ;[task] = (await environment.load(join(import.meta.dirname, '../../examples/tasks/search/q004'))) as [Task]
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  test('answer as the MCP server and the schema do, say by exit code how it went, and are in the log', async () => {
    const harness = shellHarness({ command: script })
    const summary = await world.run({ tasks: [task], environment, harness, n: 1 })
    const [rollout] = summary.rollouts
    expect(rollout).toMatchObject({ end: 'completed', verdict: { status: 'scored', components: { em: 1 } } })
    const events = await world.store.recorder.events({ rolloutId: rollout?.rolloutId ?? '' })
    const results = events.filter((event) => event.kind === 'tool_result')
    expect(results.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      'search ok',
      'search ok',
      'search ok',
      'open error',
      'search error',
      'search ok',
      'search ok',
      'answer ok',
    ])
    await using box = await world.sandbox.createBox({
      image: await world.sandbox.ensureImage(environment.box(task).image),
      profile: 'user',
      labels: { role: 'probe' },
    })
    const argumentsText = '{"query": "Mendvald Printing House founded by", "topk": 2}'
    const { signal } = new AbortController()
    const bySchema = await runToolCall(
      environment.tools(task),
      { name: 'search', argumentsText },
      { task, attempt: { id: 'attempt' }, box, signal },
    )
    expect(new Set(results.slice(0, 3).map(({ result }) => result))).toEqual(new Set([bySchema.text]))
  })
})
