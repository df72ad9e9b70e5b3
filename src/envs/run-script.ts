import { z } from 'zod'
import type { Task } from '../core/index.ts'
import type { Box } from '../sandbox/index.ts'
import { DeferredTools } from './deferred.ts'
import type { Attempt, Environment, Script, ScriptStep, Tool, ToolContext, ToolOutcome } from './contract.ts'

/** Schema of a script's steps as they stand in files. */
export const scriptStepSchema: z.ZodType<ScriptStep> = z.lazy(() =>
  z.union([
    z.strictObject({ shell: z.string() }),
    z.strictObject({ tool: z.string(), args: z.record(z.string(), z.unknown()) }),
    z.strictObject({ say: z.string() }),
    z.strictObject({ think: z.string() }),
    z.strictObject({ parallel: z.array(scriptStepSchema) }),
  ]),
)

const script = z.strictObject({ steps: z.array(scriptStepSchema) })

/** A script as an author gives it; without `weight` it weighs 1. */
export const namedScriptSchema = z.looseObject({
  name: z.string().min(1),
  weight: z.number().default(1),
  script,
  agents: z.record(z.string(), script).optional(),
})

/** What came of a step that ran a tool. */
export interface RanStep extends ToolOutcome {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
}

/**
 * Runs in a box without any model: each `shell` and `tool` step runs the environment's tool, `say` and `think` do
 * nothing. Stops early when a tool reports `infra`. Rejects with the signal's reason on abort.
 */
export async function runScript(o: {
  readonly environment: Environment
  readonly task: Task
  readonly attempt: Attempt
  readonly box: Box
  readonly script: Script
  readonly signal: AbortSignal
}): Promise<readonly RanStep[]> {
  const deferred = new DeferredTools(o.environment.tools(o.task), () => undefined)
  const { tools } = deferred
  const ran: RanStep[] = []
  for (const step of o.script.steps) {
    const calls = (await Promise.all(flat(step).map((single) => runStep(single, tools, o)))).filter((c) => c !== null)
    ran.push(...calls)
    if (calls.some((call) => call.status === 'infra')) break
  }
  await deferred.close()
  return ran
}

/** The tool and the parameter that a `shell` step goes to: the first with a string parameter `command` or `cmd`. */
export function shellTool(tools: readonly Tool[]): { readonly tool: Tool; readonly parameter: string } | null {
  for (const tool of tools) {
    const { properties } = propertiesOf.parse(tool.inputSchema)
    for (const parameter of ['command', 'cmd']) {
      if (properties[parameter]?.type === 'string') return { tool, parameter }
    }
  }
  return null
}

const propertiesOf = z.object({ properties: z.record(z.string(), z.looseObject({ type: z.unknown() })).default({}) })

function flat(step: ScriptStep): readonly ScriptStep[] {
  return 'parallel' in step ? step.parallel.flatMap(flat) : [step]
}

async function runStep(step: ScriptStep, tools: readonly Tool[], context: ToolContext): Promise<RanStep | null> {
  if ('shell' in step) {
    const found = shellTool(tools)
    const input = { [found?.parameter ?? 'command']: step.shell }
    if (found === null) return { tool: 'shell', input, status: 'error', text: 'No tool takes a command.' }
    return { tool: found.tool.name, input, ...(await found.tool.run(context, input)) }
  }
  if (!('tool' in step)) return null
  const tool = tools.find((candidate) => candidate.name === step.tool)
  if (tool === undefined) return { tool: step.tool, input: step.args, status: 'error', text: 'No such tool.' }
  return { tool: tool.name, input: step.args, ...(await tool.run(context, step.args)) }
}
