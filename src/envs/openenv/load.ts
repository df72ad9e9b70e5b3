import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import type { LoadOptions } from '../contract.ts'
import { loadJsonTasks } from '../json-tasks.ts'
import { fileDataSchema, type Offered, type OpenEnvData } from './data.ts'
import { type OpenEnvServer, serverAt } from './episode.ts'
import { type RunningServer, serverFault } from '../side-server/index.ts'
import { Session } from './session.ts'
import { observationText } from './text.ts'

/**
 * Reads task files and has the server say of each where its reset starts and what can be done there. Throws `TASK_INVALID`,
 * `ENVIRONMENT_INVALID` for tools that no chat API takes, `ENVIRONMENT_SERVER_FAILED`.
 */
export async function loadOpenEnvTasks(
  path: string,
  o: LoadOptions & { readonly name: string; readonly server: OpenEnvServer; readonly answerMs: number },
): Promise<readonly Task[]> {
  const files = await loadJsonTasks(path, { ...o, environment: o.name, data: fileDataSchema })
  if (files.length === 0) return []
  const signal = o.signal ?? new AbortController().signal
  await using server = await serverAt(o.server, signal)
  const tasks: Task[] = []
  for (const file of files) {
    const own = fileDataSchema.parse(file.data)
    const { start, ...offers } = await told(server, own.reset, { ...o, signal })
    const data: OpenEnvData = { ...own, ...offers, start }
    const instruction = start === '' ? file.instruction : `${file.instruction}\n\n${start}`
    tasks.push(makeTask({ ...file, instruction, data }))
  }
  return tasks
}

async function told(
  server: RunningServer,
  reset: Readonly<Record<string, unknown>>,
  o: { readonly name: string; readonly answerMs: number; readonly signal: AbortSignal },
): Promise<Pick<OpenEnvData, 'start' | 'steps' | 'tools'>> {
  const action = await actionSchema(server, o)
  // Each in a session of its own, as an attempt is: what a reset leaves behind must not decide where the next one starts.
  await using session = await Session.open(server.origin, { ...o, fault: server.fault })
  const start = observationText(await session.reset(reset))
  if (!mcpActions.has(action.title ?? '')) return { start, steps: 'action', tools: [actionTool(action)] }
  const listed = await session.step({ type: 'list_tools' })
  const read = listing.safeParse('refused' in listed ? null : listed.observation)
  if (!read.success) throw serverFault(`lists no tools: ${JSON.stringify(listed)}`)
  const tools = read.data.tools.map(({ name, description, input_schema: schema }): Offered => ({
    name,
    description: description === '' ? name : description,
    inputSchema: { ...schema, type: 'object' },
  }))
  const odd = tools.find(({ name }) => !/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(name))
  if (odd !== undefined || tools.length === 0) {
    const what = odd === undefined ? 'no tools' : `a tool ${JSON.stringify(odd.name)}, which no chat API takes`
    throw new PaddockError('ENVIRONMENT_INVALID', `The environment ${o.name} has ${what}`, { data: { part: 'tools' } })
  }
  return { start, steps: 'tools', tools }
}

/** Titles of the action schemas under which an environment offers MCP tools (openenv 0.10.0, core/env_server). */
const mcpActions = new Set(['Action', 'CallToolAction', 'ListToolsAction'])
const listing = z.object({
  tools: z.array(
    z.object({ name: z.string(), description: z.string(), input_schema: z.record(z.string(), z.unknown()) }),
  ),
})
const actionShape = z.looseObject({
  title: z.string().optional(),
  description: z.string().optional(),
  type: z.literal('object'),
  properties: z.record(z.string(), z.unknown()).default({}),
})

async function actionSchema(
  server: RunningServer,
  o: { readonly answerMs: number; readonly signal: AbortSignal },
): Promise<z.infer<typeof actionShape>> {
  const stop = AbortSignal.any([o.signal, server.fault, AbortSignal.timeout(o.answerMs)])
  try {
    const answer = await fetch(`${server.origin}/schema`, { signal: stop })
    return z.object({ action: actionShape }).parse(await answer.json()).action
  } catch (cause) {
    o.signal.throwIfAborted()
    server.fault.throwIfAborted()
    throw serverFault(`does not say what its actions are: ${String(cause)}`, cause)
  }
}

/** The one tool of an environment without tools: its action, but for what only programs fill in. */
function actionTool(action: z.infer<typeof actionShape>): Offered {
  const { title: _, description, ...schema } = action
  const { metadata: __, ...properties } = schema.properties
  const about = description === undefined || description === '' ? 'Takes one step in the environment.' : description
  return { name: 'step', description: about, inputSchema: { ...schema, properties } }
}
