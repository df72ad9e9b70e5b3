import { z } from 'zod'
import { chatRequestOf } from '../../proxy/index.ts'
import type { CallRecord, SessionLog } from '../../trajectory/index.ts'

const schema = z.looseObject({
  properties: z
    .record(z.string(), z.looseObject({ type: z.unknown().optional(), enum: z.unknown().optional() }))
    .default({}),
  required: z.array(z.string()).default([]),
})
const named = z.looseObject({
  name: z.string(),
  parameters: schema.optional(),
})
const request = z.looseObject({ tools: z.array(z.looseObject({ function: named })).default([]) })

/** A tool that starts another agent, with arguments that make it do what `instruction` says. */
export interface AgentTool {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Names of such a tool: of Claude Code and Qwen Code, opencode (`task`), Cline and Codex (`spawn_agent`), Gemini CLI. */
const agentToolNames = /^(?:\w+__)?(task|agent|spawn_?agent|subagent|delegate(_to_agent)?|new_task|invoke_agent)$/i
const instructionNames = /^(prompt|task|message|instructions?|objective|request|query)$/i
const roleNames = /^(systemPrompt|system_prompt)$/i

/** The tool of a request, in any dialect, that starts another agent; null where none is offered. */
export function agentTool(log: SessionLog, call: CallRecord, instruction: string): AgentTool | null {
  const text = Buffer.from(chatRequestOf(log, call) ?? []).toString()
  const tool = toolsOf(text).find(({ name }) => agentToolNames.test(name))
  if (tool === undefined) return null
  const { properties, required } = tool.parameters ?? emptySchema
  const args: Record<string, unknown> = {}
  for (const key of Object.keys(properties)) {
    if (instructionNames.test(key)) args[key] = instruction
    else if (roleNames.test(key)) args[key] = 'You are a careful agent. Use the shell.'
    else if (/agent(_type|_name)?$/i.test(key)) args[key] = kindOf(properties[key]?.enum, text)
    else if (required.includes(key) && properties[key]?.type === 'string') args[key] = 'conformance probe'
  }
  return { name: tool.name, args }
}

const emptySchema = schema.parse({})

/** Kinds of agents for any work: of Gemini CLI (whose prompt has the next word too), Claude Code and Qwen Code, opencode. */
const allRounders = ['generalist', 'general-purpose', 'general'] as const

/** One that the harness itself names, as a choice of the parameter or somewhere in its request. */
function kindOf(choices: unknown, request: string): string {
  if (Array.isArray(choices) && typeof choices[0] === 'string') return choices[0]
  return allRounders.find((kind) => request.includes(kind)) ?? 'general'
}

function toolsOf(text: string): readonly z.infer<typeof named>[] {
  if (text === '') return []
  const parsed = request.safeParse(JSON.parse(text))
  return parsed.data?.tools.map((tool) => tool.function) ?? []
}
