import type { Command } from 'commander'
import { type Cli, type CommandContext, repeated, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { type ExitCode, exitCode } from '../exit.ts'
import { printable } from '../present/colour.ts'
import { table } from '../present/table.ts'
import { duration, plural } from '../present/units.ts'
import { type PublicNetwork, publicNetworkOf, publicNetworkOption } from '../public-network.ts'
import { sandboxOf } from '../sandbox.ts'
import { taskPlace } from '../task-place.ts'
import {
  appendResult,
  readResults,
  type ValidatedTask,
  validatedTask,
  validationStatuses,
  writeQuarantine,
} from '../validation-results.ts'
import type { ValidationStatus } from '../../envs/index.ts'
import type { Paint } from '../present/colour.ts'
import { resolve } from 'node:path'

interface ValidateOptions {
  readonly trustTasks?: boolean
  readonly publicNetwork?: PublicNetwork
  readonly env: string
  readonly published: boolean
  readonly repeat?: number
  readonly results?: string
  readonly task?: readonly string[]
  readonly parallel: number
  readonly quarantine?: string
}

/** `paddock validate`: proves tasks with their own scripts. Exit code 1 when any is wrong, 3 when boxes failed. */
export function addValidate(program: Command, cli: Cli): void {
  program
    .command('validate')
    .description('prove tasks: oracle scores 1, null agent and known cheats 0, the same twice')
    .argument('<tasks>', 'directory of a task, or of tasks, or generated ones such as records:0..9:1')
    .option('--env <name>', 'environment of the tasks: a name, or the path of a plugin', 'terminal')
    .option('--published', 'ask of tasks what published ones come with: oracle 1, null agent less; no cheats', false)
    .option('--repeat <n>', 'run each script n times (default: the oracle twice, others once)', wholeNumber(1))
    .option(
      '--results <file>',
      'append each task to this file of JSON lines as it is done; a task whose digest the file has is not run again',
    )
    .option('--task <name>', 'only this task; may be repeated', repeated)
    .option('--parallel <n>', 'scripts at once', wholeNumber(1), 2)
    .option('--trust-tasks', 'let programs that the tasks bring for this machine run, as you (cua-bench, sidecars)')
    .addOption(publicNetworkOption())
    .option(
      '--quarantine <file>',
      'write the tasks that were refuted there; `paddock run --quarantine` leaves them out',
    )
    .addHelpText('after', '\nExample:\n  $ paddock validate examples/tasks/terminal')
    .action(async (path: string, options: ValidateOptions, command: Command) =>
      cli.run(command, publicNetworkOf(options), (context) => validate(context, path, options)),
    )
}

async function validate(context: CommandContext, path: string, options: ValidateOptions): Promise<ExitCode> {
  const { loadEach, validateTasks } = await import('../../envs/index.ts')
  const { io, paint } = context
  const environment = (
    await environmentsOf(context.loaded, {
      also: options.env,
      cwd: io.cwd,
      trustTasks: options.trustTasks ?? false,
    })
  ).get(options.env)
  const { signal } = io
  const loaded = await loadEach(environment, taskPlace(io.cwd, path), { signal, only: options.task ?? [] })
  const file = options.results === undefined ? null : resolve(io.cwd, options.results)
  const asked = { verifier: environment.verifierVersion, published: options.published }
  const known = file === null ? new Map<string, ValidatedTask>() : await readResults(file, asked)
  const lines: ValidatedTask[] = []
  const told = (line: ValidatedTask): void => {
    lines.push(line)
    if (context.json) io.out(JSON.stringify(line))
  }
  const tasks = loaded.tasks.filter(({ name, digest }) => {
    const line = known.get(digest)
    if (line !== undefined) told({ ...line, task: name })
    return line === undefined
  })
  const sandbox = await sandboxOf(context.loaded.config)
  const count = loaded.tasks.length + loaded.refused.length
  try {
    context.notice(`Validating ${plural(count - lines.length, 'task')} of ${path} …`)
    if (lines.length > 0) context.notice(`${plural(lines.length, 'task')} taken from ${options.results}`)
    await validateTasks({
      environment,
      tasks,
      refused: loaded.refused,
      sandbox,
      signal,
      published: options.published,
      ...(options.repeat === undefined ? {} : { repeat: options.repeat }),
      parallel: options.parallel,
      onProgress: (line) => context.notice(paint('dim', printable(line))),
      onResult: (row) => {
        const line = validatedTask(row, asked)
        if (file !== null) appendResult(file, line)
        told(line)
        context.notice(`${statusWord(line, paint)}  ${printable(line.task)}  ${duration(line.durationMs)}`)
      },
    }).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  } finally {
    await sandbox.close()
  }
  const sorted = lines.toSorted((a, b) => (a.task < b.task ? -1 : a.task > b.task ? 1 : 0))
  await tell(context, options, sorted)
  if (!signal.aborted) return exitCodeOf(sorted)
  context.notice(`${plural(count - sorted.length, 'task')} not validated.`)
  throw signal.reason
}

async function tell(context: CommandContext, options: ValidateOptions, tasks: readonly ValidatedTask[]): Promise<void> {
  const { io, paint } = context
  if (options.quarantine !== undefined) {
    const wrong = await writeQuarantine(resolve(io.cwd, options.quarantine), tasks)
    context.notice(`${plural(wrong, 'task')} in quarantine: ${options.quarantine}`)
  }
  if (context.json) io.out(JSON.stringify({ totals: Object.fromEntries(totalsOf(tasks)) }))
  else io.out(tasksText(tasks, options.published, paint, io.columns))
}

/** Tasks without a solution are no failure beside others that are proven; alone they prove nothing. */
function exitCodeOf(rows: readonly ValidatedTask[]): ExitCode {
  const has = (...statuses: readonly ValidationStatus[]): boolean =>
    rows.some(({ status }) => statuses.includes(status))
  if (has('refuted', 'flaky', 'unbuilt', 'refused')) return exitCode.problems
  if (has('infra')) return exitCode.infra
  return has('proven') ? exitCode.ok : exitCode.problems
}

function totalsOf(rows: readonly ValidatedTask[]): ReadonlyMap<ValidationStatus, number> {
  return new Map(validationStatuses.map((one) => [one, rows.filter(({ status }) => status === one).length]))
}

const columnsOf = {
  oracle: 'oracle',
  solution: 'solution',
  null_agent: 'null agent',
  cheat: 'cheats',
  distractor: 'distractors',
} as const
type Role = keyof typeof columnsOf

function tasksText(rows: readonly ValidatedTask[], published: boolean, paint: Paint, columns: number | null): string {
  const roles: readonly Role[] = published
    ? ['oracle', 'null_agent']
    : ['oracle', 'solution', 'null_agent', 'cheat', 'distractor']
  const problems = rows.flatMap((row) => row.problems.map((problem) => printable(`${row.task}: ${problem}`)))
  const totals = [...totalsOf(rows)].filter(([status, count]) => status === 'proven' || count > 0)
  const ends = totals.map(([status, count], i) =>
    i === 0 ? `${count} of ${plural(rows.length, 'task')} ${status}` : `${count} ${status}`,
  )
  const titles = ['task', ...roles.map((role) => columnsOf[role]), 'status'].map((title) => ({ title }))
  return [
    table(
      [...titles, { title: 'time', align: 'right' }],
      rows.map((row) => [
        printable(row.task),
        ...roles.map((role) => rewards(row, role)),
        statusWord(row, paint),
        duration(row.durationMs),
      ]),
      { paint, columns },
    ),
    ...problems.map((problem) => paint('bad', `problem  ${problem}`)),
    ...rows.flatMap((row) => row.notes.map((note) => paint('warn', printable(`note  ${row.task}: ${note}`)))),
    ends.join(', '),
  ].join('\n')
}

function rewards(row: ValidatedTask, role: Role): string {
  return row.proofs
    .filter((proof) => proof.role === role)
    .map((proof) => `${proof.reward ?? proof.status}${proof.holds ? '' : '!'}`)
    .join(' ')
}

function statusWord(row: ValidatedTask, paint: Paint): string {
  const { status } = row
  return paint(status === 'proven' ? 'good' : status === 'infra' || status === 'unproven' ? 'warn' : 'bad', status)
}
