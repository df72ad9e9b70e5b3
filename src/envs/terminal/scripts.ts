import { join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { NamedScript } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { scriptStepSchema } from '../run-script.ts'
import type { TerminalData } from './data.ts'
import { directoryOf, ownFolder, textOf } from './folders.ts'
import { scriptCommand } from './shebang.ts'
import { stepTasksOf } from './steps.ts'

/**
 * `script.json` of a task folder: candidate scripts for the scripted engine and for validation. Our own addition to the
 * format; a task without one has its solution script as oracle.
 */
const scriptFileSchema = z.strictObject({
  candidates: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        role: z.enum(['oracle', 'weak', 'cheat']),
        weight: z.number().positive().default(1),
        steps: z.array(scriptStepSchema),
      }),
    )
    .refine((list) => list.filter((c) => c.role === 'oracle').length === 1, 'must have exactly one oracle'),
})

type Candidate = z.infer<typeof scriptFileSchema>['candidates'][number]

/**
 * The oracle of `script.json`, else `solution/solve.sh`; of a task of several steps that of each. Throws `TASK_INVALID`
 * when the task or a step has neither.
 */
export async function oracleOf(task: TaskOf<TerminalData>): Promise<NamedScript> {
  const [first, ...later] = await Promise.all((stepTasksOf(task) ?? []).map(oracleOf))
  if (first !== undefined) return { ...first, later }
  const oracle = (await candidatesOf(task)).find((candidate) => candidate.role === 'oracle')
  if (oracle !== undefined) return named(oracle)
  const [solution] = await solutionsOf(task)
  if (solution !== undefined) return solution
  throw new PaddockError('TASK_INVALID', `Task ${task.name} has no oracle`, {
    data: { task: task.name },
    fix: 'Write solution/solve.sh, or a script.json with a candidate of role "oracle".',
  })
}

/** `solution/solve.sh`, run from `/solution` by its own first line, for as long as an agent may work, at most ten minutes. */
export async function solutionsOf(task: TaskOf<TerminalData>): Promise<readonly NamedScript[]> {
  const { files, names } = await directoryOf(task, join(ownFolder(task), 'solution'))
  if (files === null || !names.includes('solve.sh')) return []
  const env = Object.entries(task.data.solutionEnv).map(([key, value]) => `${key}=${shellQuote(value)} `)
  const command = env.join('') + scriptCommand('/solution/solve.sh').map(shellQuote).join(' ')
  const seconds = (task.data.agent.timeoutMs ?? 600_000) / 1000
  return [
    {
      name: 'solution',
      weight: 1,
      script: { steps: [{ tool: 'shell', args: { command, timeout_sec: Math.max(1, Math.min(600, seconds)) } }] },
      files: [{ directory: '/solution', from: files }],
    },
  ]
}

/** The cheats of `script.json`, and each `cheats/*.sh` as one command. */
export async function cheatsOf(task: TaskOf<TerminalData>): Promise<readonly NamedScript[]> {
  const folder = join(ownFolder(task), 'cheats')
  const { names: all } = await directoryOf(task, folder)
  const names = all.filter((name) => name.endsWith('.sh')).toSorted()
  const scripts = await Promise.all(
    names.map(async (name): Promise<NamedScript> => {
      const script = (await textOf(task, join(folder, name))) ?? ''
      return { name: name.replace(/\.sh$/, ''), weight: 1, script: { steps: [{ shell: script }] } }
    }),
  )
  return [...(await candidatesOf(task)).filter((c) => c.role === 'cheat').map(named), ...scripts]
}

/** The weak attempts of `script.json`. */
export async function distractorsOf(task: TaskOf<TerminalData>): Promise<readonly NamedScript[]> {
  return (await candidatesOf(task)).filter((candidate) => candidate.role === 'weak').map(named)
}

async function candidatesOf(task: TaskOf<TerminalData>): Promise<readonly Candidate[]> {
  const own = join(ownFolder(task), 'script.json')
  const text = await textOf(task, own)
  const path = join(task.source, own)
  if (text === null) return []
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch (cause) {
    throw new PaddockError('TASK_INVALID', `${path} is not JSON: ${String(cause)}`, { cause, data: { file: path } })
  }
  const parsed = scriptFileSchema.safeParse(raw)
  if (parsed.success) return parsed.data.candidates
  const place = parsed.error.issues[0]?.path.join('.') ?? ''
  throw new PaddockError('TASK_INVALID', `${path}: ${z.prettifyError(parsed.error)}`, { data: { file: path, place } })
}

function named(candidate: Candidate): NamedScript {
  return { name: candidate.name, weight: candidate.weight, script: { steps: candidate.steps } }
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
