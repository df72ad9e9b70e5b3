import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import type { ImportedThread, ImportedTrajectory, ImportFormat } from './contract.ts'
import { invalid } from './invalid.ts'
import { parsed } from './parsed.ts'
import { RawObject } from './raw.ts'

const content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
const step = z.looseObject({
  source: z.enum(['system', 'user', 'agent']),
  message: content.nullish(),
  reasoning_content: z.string().nullish(),
  model_name: z.string().nullish(),
  is_copied_context: z.boolean().nullish(),
  llm_call_count: z.number().int().min(0).nullish(),
  tool_calls: z
    .array(
      z.looseObject({
        tool_call_id: z.string(),
        function_name: z.string(),
        extra: z.looseObject({ arguments_text: z.string().optional() }).nullish(),
      }),
    )
    .nullish(),
  observation: z
    .looseObject({
      results: z.array(z.looseObject({ source_call_id: z.string().nullish(), content: content.nullish() })),
    })
    .nullish(),
})
type Step = z.infer<typeof step>
const trajectory = z.looseObject({
  schema_version: z.string().regex(/^ATIF-v1\.\d+$/, 'must be ATIF-v1.x'),
  session_id: z.string().nullish(),
  trajectory_id: z.string().nullish(),
  agent: z.looseObject({
    name: z.string(),
    version: z.string(),
    model_name: z.string().nullish(),
    tool_definitions: z.array(z.unknown()).nullish(),
  }),
  steps: z.array(step).min(1),
  continued_trajectory_ref: z
    .string()
    .regex(/^(?!\.)[^/\\]+$/, 'must name a file in the same folder')
    .nullish(),
  extra: z.looseObject({ task: z.string().optional(), reward: z.number().nullish() }).nullish(),
})

/**
 * The Agent Trajectory Interchange Format, ATIF-v1.x (Python package `atif` 1.8.0). An observation of an answer without calls is what the
 * agent was told next. Its sub-agents' trajectories, where they stand inside, are threads of their own. Ids and logprobs of its metrics
 * are not taken over: nobody here can say of which tokenizer they are.
 */
export const atifFormat: ImportFormat = {
  name: 'atif',
  mark: 'steps',
  summary: 'ATIF-v1.x trajectories, one a file or one a line',
  read(text, place) {
    const value = parsed(trajectory, text, place)
    const next = value.continued_trajectory_ref ?? null
    if (next !== null) {
      throw invalid(
        place,
        `it continues in ${next}, which a line of JSON lines cannot name: give each trajectory as a file`,
      )
    }
    return trajectoryOf(value, text, place)
  },
}

/** The trajectory of a file, with those of the files in the same folder in which it continues. `files`: what was read already, each file once. */
export async function readAtifFile(path: string, place: string, files: Set<string>): Promise<ImportedTrajectory> {
  if (files.has(path)) throw invalid(place, `${basename(path)} is part of another trajectory already: leave it out`)
  files.add(path)
  const text = await readFile(path, 'utf8').catch(() => {
    throw invalid(place, `${basename(path)} is missing, or cannot be read`)
  })
  const value = parsed(trajectory, text, place)
  const first = trajectoryOf(value, text, place)
  const next = value.continued_trajectory_ref ?? null
  if (next === null) return first
  const rest = await readAtifFile(join(dirname(path), next), `${place}, continued in ${next}`, files)
  const [own, ...inner] = first.threads
  return { ...first, reward: first.reward ?? rest.reward, threads: [own, ...rest.threads, ...inner] }
}

function trajectoryOf(value: z.infer<typeof trajectory>, text: string, place: string): ImportedTrajectory {
  const model = value.agent.model_name ?? value.steps.find(({ model_name: name }) => name)?.model_name ?? null
  return {
    place,
    task: { name: value.extra?.task ?? null, instruction: null },
    reward: value.extra?.reward ?? null,
    model,
    labels: {
      agent: value.agent.name,
      agent_version: value.agent.version,
      ...(value.session_id ? { session_id: value.session_id } : {}),
      ...(value.trajectory_id ? { trajectory_id: value.trajectory_id } : {}),
    },
    threads: threadsOf(new RawObject(text), place),
  }
}

/** A trajectory's own thread first. */
function threadsOf(
  raw: RawObject,
  place: string,
  of: ImportedThread['of'] = 'main',
): [ImportedThread, ...ImportedThread[]] {
  const inner = raw.elements('subagent_trajectories').flatMap((text, nth) => {
    parsed(trajectory, text, `${place}, sub-agent ${nth + 1}`)
    return threadsOf(new RawObject(text), place, 'subagent')
  })
  const messages = raw
    .elements('steps')
    .flatMap((text) => messagesOf(step.parse(JSON.parse(text)), new RawObject(text)))
  return [{ messages, tools: raw.object('agent')?.raw('tool_definitions') ?? null, of }, ...inner]
}

function messagesOf(one: Step, raw: RawObject): readonly string[] {
  const results = one.observation?.results ?? []
  const calls = one.tool_calls ?? []
  const observed = results.map(({ source_call_id: id, content: said }) =>
    JSON.stringify(
      id === null || id === undefined
        ? // Without a call it is what the agent is told next; behind a system's step, a result that nobody asked for.
          { role: one.source === 'system' ? 'tool' : 'user', content: partsOf(said) }
        : { role: 'tool', tool_call_id: id, content: partsOf(said) },
    ),
  )
  if (one.source !== 'agent') {
    const isEmpty = one.message === '' && observed.length > 0
    return isEmpty ? observed : [JSON.stringify({ role: one.source, content: partsOf(one.message) }), ...observed]
  }
  const members = [
    '"role":"assistant"',
    `"content":${calls.length > 0 && (one.message ?? '') === '' ? 'null' : JSON.stringify(partsOf(one.message))}`,
    ...(one.reasoning_content ? [`"reasoning_content":${JSON.stringify(one.reasoning_content)}`] : []),
    ...(calls.length === 0 ? [] : [`"tool_calls":[${raw.elements('tool_calls').map(callText).join(',')}]`]),
    // Another trajectory owns it, or no model said it.
    ...(one.is_copied_context === true || one.llm_call_count === 0 ? ['"weight":0'] : []),
  ]
  return [`{${members.join(',')}}`, ...observed]
}

function callText(text: string): string {
  const raw = new RawObject(text)
  // Arguments that were no object stand beside as text.
  const written = raw.object('extra')?.raw('arguments_text') ?? JSON.stringify(raw.raw('arguments') ?? '{}')
  return `{"id":${raw.raw('tool_call_id')},"type":"function","function":{"name":${raw.raw('function_name')},"arguments":${written}}}`
}

function partsOf(said: Step['message']): string | readonly object[] {
  if (typeof said === 'string') return said
  return (said ?? []).map((part) => {
    const { source } = part
    const path = typeof source === 'object' && source !== null && 'path' in source ? source.path : undefined
    return part.type === 'image' && typeof path === 'string' ? { type: 'image_url', image_url: { url: path } } : part
  })
}
