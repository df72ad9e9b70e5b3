import type { Command } from 'commander'
import { type Cli, repeated, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { type ExitCode, exitCode } from '../exit.ts'
import { printable } from '../present/colour.ts'
import { table } from '../present/table.ts'
import { duration, plural } from '../present/units.ts'
import { type PublicNetwork, publicNetworkOf, publicNetworkOption } from '../public-network.ts'
import { writeQuarantine } from '../quarantine.ts'
import { sandboxOf } from '../sandbox.ts'
import { taskPlace } from '../task-place.ts'
import type { ValidationRow, ValidationStatus } from '../../envs/index.ts'
import type { Paint } from '../present/colour.ts'
import { resolve } from 'node:path'

interface ValidateOptions {
  readonly trustTasks?: boolean
  readonly publicNetwork?: PublicNetwork
  readonly env: string
  readonly published: boolean
  readonly repeat?: number
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
      cli.run(command, publicNetworkOf(options), async (context) => {
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
        const sandbox = await sandboxOf(context.loaded.config)
        try {
          context.notice(`Validating ${plural(loaded.tasks.length + loaded.refused.length, 'task')} of ${path} …`)
          const rows = await validateTasks({
            environment,
            ...loaded,
            sandbox,
            signal,
            published: options.published,
            ...(options.repeat === undefined ? {} : { repeat: options.repeat }),
            parallel: options.parallel,
            onProgress: (line) => context.notice(paint('dim', printable(line))),
            onResult: (row) =>
              context.notice(`${statusWord(row, paint)}  ${printable(row.name)}  ${duration(row.durationMs)}`),
          })
          if (options.quarantine !== undefined) {
            const count = await writeQuarantine(resolve(io.cwd, options.quarantine), rows)
            context.notice(`${plural(count, 'task')} in quarantine: ${options.quarantine}`)
          }
          context.result({ totals: Object.fromEntries(totalsOf(rows)), tasks: rows.map(rowJson) }, () =>
            rowsText(rows, options.published, paint, io.columns),
          )
          return exitCodeOfRows(rows)
        } finally {
          await sandbox.close()
        }
      }),
    )
}

/** Tasks without a solution are no failure beside others that are proven; alone they prove nothing. */
function exitCodeOfRows(rows: readonly ValidationRow[]): ExitCode {
  const has = (...statuses: readonly ValidationStatus[]): boolean =>
    rows.some(({ status }) => statuses.includes(status))
  if (has('refuted', 'flaky', 'unbuilt', 'refused')) return exitCode.problems
  if (has('infra')) return exitCode.infra
  return has('proven') ? exitCode.ok : exitCode.problems
}

const statuses = ['proven', 'refuted', 'flaky', 'infra', 'unproven', 'unbuilt', 'refused'] as const

function totalsOf(rows: readonly ValidationRow[]): ReadonlyMap<ValidationStatus, number> {
  return new Map(statuses.map((one) => [one, rows.filter(({ status }) => status === one).length]))
}

const columnsOf = {
  oracle: 'oracle',
  solution: 'solution',
  null_agent: 'null agent',
  cheat: 'cheats',
  distractor: 'distractors',
} as const
type Role = keyof typeof columnsOf

function rowsText(rows: readonly ValidationRow[], published: boolean, paint: Paint, columns: number | null): string {
  const roles: readonly Role[] = published
    ? ['oracle', 'null_agent']
    : ['oracle', 'solution', 'null_agent', 'cheat', 'distractor']
  const problems = rows.flatMap((row) => row.problems.map((problem) => printable(`${row.name}: ${problem}`)))
  const totals = [...totalsOf(rows)].filter(([status, count]) => status === 'proven' || count > 0)
  const ends = totals.map(([status, count], i) =>
    i === 0 ? `${count} of ${plural(rows.length, 'task')} ${status}` : `${count} ${status}`,
  )
  const titles = ['task', ...roles.map((role) => columnsOf[role]), 'status'].map((title) => ({ title }))
  return [
    table(
      [...titles, { title: 'time', align: 'right' }],
      rows.map((row) => [
        printable(row.name),
        ...roles.map((role) => rewards(row, role)),
        statusWord(row, paint),
        duration(row.durationMs),
      ]),
      { paint, columns },
    ),
    ...problems.map((problem) => paint('bad', `problem  ${problem}`)),
    ends.join(', '),
  ].join('\n')
}

function rewards(row: ValidationRow, role: Role): string {
  return row.proofs
    .filter((proof) => proof.role === role)
    .map((proof) => `${proof.verdict.reward ?? proof.verdict.status}${proof.holds ? '' : '!'}`)
    .join(' ')
}

function statusWord(row: ValidationRow, paint: Paint): string {
  const { status } = row
  return paint(status === 'proven' ? 'good' : status === 'infra' || status === 'unproven' ? 'warn' : 'bad', status)
}

function rowJson(row: ValidationRow) {
  return {
    task: row.name,
    digest: row.task?.digest ?? null,
    status: row.status,
    problems: row.problems,
    durationMs: Math.round(row.durationMs),
    proofs: row.proofs.map((proof) => ({
      name: proof.name,
      role: proof.role,
      round: proof.round,
      holds: proof.holds,
      why: proof.why,
      status: proof.verdict.status,
      reward: proof.verdict.reward,
      components: proof.verdict.components,
      evidence: proof.verdict.evidence,
      durationMs: Math.round(proof.durationMs),
    })),
  }
}
