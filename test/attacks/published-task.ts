/** A task as others publish it (shared verification, root everywhere), proven by its own solution, and cheats at it. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Task } from '../../src/core/index.ts'
import { attempt, terminal, validateTasks, type ValidationRow } from '../../src/envs/index.ts'
import type { VerdictDraft } from '../../src/reward/index.ts'
import type { SandboxProvider } from '../../src/sandbox/index.ts'

const toml = (mode: string, more: string): string => `schema_version = "1.4"
${more}
[verifier]
environment_mode = "${mode}"
timeout_sec = 60
[environment]
network_mode = "no-network"
`

export interface TaskFiles {
  readonly mode?: 'shared' | 'separate'
  readonly tests: Readonly<Record<string, string>>
  readonly solution: string
  /** Lines before the first table of `task.toml`. */
  readonly toml?: string
  /** Lines of the Dockerfile after the usual ones. */
  readonly dockerfile?: string
}

/** Writes the folder of a task and loads it. */
export async function publishedTask(folder: string, o: TaskFiles): Promise<Task> {
  const files = {
    'task.toml': toml(o.mode ?? 'shared', o.toml ?? ''),
    'instruction.md': 'Do it.',
    'environment/Dockerfile': `FROM paddock-base
RUN apt-get update && apt-get install -y --no-install-recommends python3-pytest
${o.dockerfile ?? ''}
`,
    'solution/solve.sh': o.solution,
    ...Object.fromEntries(Object.entries(o.tests).map(([path, text]) => [`tests/${path}`, text])),
  }
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  const [task] = await terminal.load(folder)
  if (task === undefined) throw new Error('no task')
  return task
}

const { signal } = new AbortController()

/** What `paddock validate --published` says of a task; what it proves is kept in its folder. */
export async function proven(task: Task, sandbox: SandboxProvider): Promise<ValidationRow> {
  const [row] = await validateTasks({ environment: terminal, tasks: [task], sandbox, signal, published: true })
  if (row === undefined) throw new Error('no row')
  return row
}

/** The verdict on what a shell script leaves as root. */
export function verdictOn(task: Task, script: string, sandbox: SandboxProvider): Promise<VerdictDraft> {
  const steps = [{ shell: script }]
  return attempt({
    environment: terminal,
    task,
    script: { name: 'cheat', weight: 1, script: { steps } },
    sandbox,
    signal,
  })
}
