import { z } from 'zod'
import { isPaddockError, maxNesting, nestingDepth, PaddockError } from '../core/index.ts'
import type { Tool, ToolContext, ToolOutcome } from './contract.ts'
import type { Deferral } from './deferral.ts'

/** What the author of a tool writes. */
export interface ToolSpec<Input> {
  readonly name: string
  readonly description: string
  /** How a model that writes its calls as text is told to use it; see {@link Tool}. */
  readonly spoken?: string
  readonly input: z.ZodType<Input>
  /** True: a harness in the box has the like of it by itself (a shell), so it is not offered over MCP. */
  readonly nativeToHarness?: true
  /** Says of a call that it is answered later; null: at once. Default: all are answered at once. */
  deferred?(context: ToolContext, input: Input): Deferral | null
  run(context: ToolContext, input: Input): Promise<ToolOutcome>
}

/**
 * Makes a tool of its author's plain object. Throws `ENVIRONMENT_INVALID` for a name or schema that chat APIs refuse.
 * The result turns bad arguments into status `error` and faults of the box into `infra`.
 */
export function defineTool<Input>(spec: ToolSpec<Input>): Tool {
  if (!/^[a-z][a-z0-9_]{0,63}$/.test(spec.name)) {
    throw new PaddockError('ENVIRONMENT_INVALID', `The tool name ${JSON.stringify(spec.name)} is not usable`, {
      fix: 'Use lower case letters, digits and underscores, at most 64, beginning with a letter.',
    })
  }
  const { $schema: _, ...inputSchema } = z.toJSONSchema(spec.input)
  if (inputSchema.type !== 'object') {
    throw new PaddockError('ENVIRONMENT_INVALID', `The input of tool ${spec.name} is not an object`, {
      fix: 'Give the tool a z.object(…) as input.',
    })
  }
  return {
    name: spec.name,
    description: spec.description,
    ...(spec.spoken === undefined ? {} : { spoken: spec.spoken }),
    input: spec.input,
    inputSchema,
    ...(spec.nativeToHarness === undefined ? {} : { nativeToHarness: spec.nativeToHarness }),
    ...(spec.deferred === undefined
      ? {}
      : { deferred: (context, input) => spec.deferred?.(context, spec.input.parse(input)) ?? null }),
    run: async (context, input) => {
      const parsed = spec.input.safeParse(input)
      if (!parsed.success) return { status: 'error', text: `Invalid arguments: ${z.prettifyError(parsed.error)}` }
      try {
        return await spec.run(context, parsed.data)
      } catch (error) {
        if (context.signal.aborted) throw context.signal.reason
        if (isPaddockError(error) && error.family === 'infra') return { status: 'infra', text: error.line() }
        throw error
      }
    },
  }
}

/**
 * Runs a tool call as a model wrote it. An unknown name, or arguments that are not a JSON object, give status `error`
 * with a text that the model can act on.
 */
export async function runToolCall(
  tools: readonly Tool[],
  call: { readonly name: string; readonly argumentsText: string },
  context: ToolContext,
): Promise<ToolOutcome> {
  const tool = tools.find((candidate) => candidate.name === call.name)
  if (tool === undefined) {
    const known = tools.map((candidate) => candidate.name).join(', ')
    return { status: 'error', text: `There is no tool ${JSON.stringify(call.name)}. Tools: ${known}.` }
  }
  if (nestingDepth(Buffer.from(call.argumentsText)) > maxNesting) {
    return { status: 'error', text: `The arguments are nested more than ${maxNesting} deep.` }
  }
  let input: unknown
  try {
    input = JSON.parse(call.argumentsText === '' ? '{}' : call.argumentsText)
  } catch (error) {
    return { status: 'error', text: `The arguments are not valid JSON: ${String(error)}` }
  }
  return tool.run(context, input)
}
