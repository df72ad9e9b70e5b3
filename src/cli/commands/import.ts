import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../../core/index.ts'
import { importFormats, type StoreTakenIn } from '../../trajectory/index.ts'
import { type Cli, type CommandContext, labels } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { plural, shortId } from '../present/units.ts'

interface ImportOptions {
  readonly format: string
  readonly name?: string
  readonly split?: string
  readonly reward?: number
  readonly label?: Readonly<Record<string, string>>
}

/** Other data directories, whole. */
const stores = {
  name: 'paddock',
  summary:
    'data directories of other Paddocks: finished rollouts as they are, with tokens and logprobs, in their own runs',
}
const formats = [...importFormats, stores]

/** `paddock import`: trajectories of others become rollouts of a run of their own. */
export function addImport(program: Command, cli: Cli): void {
  program
    .command('import')
    .description('import trajectories from elsewhere as a run of their own, to look at, score, compare and export')
    .argument('<files...>', 'JSON, JSON lines, or folders (harbor, paddock)')
    .addOption(
      new Option('--format <name>', 'what they are').choices(formats.map(({ name }) => name)).makeOptionMandatory(),
    )
    .option('--name <name>', 'name of the run (default: import-<format>)')
    .option('--split <name>', 'split of their tasks (default: train)')
    .option('--reward <n>', 'the reward of those whose file says none; without it they have no verdict', real)
    .option('--label <name=value>', 'a label on each rollout, several times', labels)
    .addHelpText(
      'after',
      `
Formats:
${formats.map(({ name, summary }) => `  ${name.padEnd(9)} ${summary}`).join('\n')}

Example:
  $ paddock import demonstrations.jsonl --format chat --reward 1

Nothing is imported unless all of it can be read. The same files with the same options a second time change nothing.`,
    )
    .action(async (files: readonly string[], options: ImportOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        if (options.format === stores.name) return takeStores(context, files, options)
        const { importTrajectories, openStore } = await import('../../trajectory/index.ts')
        const { directory, synchronous, catalogue } = context.loaded.config.store
        await using store = await openStore(directory, { synchronous, catalogue, work: 'import' })
        const report = await importTrajectories(store, {
          format: options.format,
          paths: files.map((file) => resolve(context.io.cwd, file)),
          signal: context.io.signal,
          ...(options.name === undefined ? {} : { name: options.name }),
          ...(options.split === undefined ? {} : { split: options.split }),
          ...(options.reward === undefined ? {} : { reward: options.reward }),
          ...(options.label === undefined ? {} : { labels: options.label }),
        })
        context.result(report, () => {
          const missing = report.withoutTrajectory.map(
            (place) => `\n  ${place} has a result and no trajectory: not imported`,
          )
          const what = `${plural(report.trajectories, 'rollout')} of ${plural(report.groups, 'task')}, ${report.withReward} with a reward`
          if (report.taken === 0) return `run ${shortId(report.runId)}  was imported before: ${what}${missing.join('')}`
          const gone = report.isNew ? '' : ` (went on: ${report.taken} were missing)`
          return `run ${shortId(report.runId)}  ${what}${gone}${missing.join('')}`
        })
        return exitCode.ok
      }),
    )
}

async function takeStores(
  context: CommandContext,
  directories: readonly string[],
  { name, split, reward, label }: ImportOptions,
): Promise<ExitCode> {
  const given = Object.entries({ name, split, reward, label }).flatMap(([key, value]) =>
    value === undefined ? [] : [`--${key}`],
  )
  if (given.length > 0) {
    throw new PaddockError(
      'USAGE',
      `--format paddock takes rollouts as they are, so ${given.join(' and ')} would do nothing`,
      {
        fix: `Leave out ${given.join(' and ')}.`,
      },
    )
  }
  const { openReader, openStore, takeInStore } = await import('../../trajectory/index.ts')
  const { directory, synchronous, catalogue } = context.loaded.config.store
  await using store = await openStore(directory, { synchronous, catalogue, work: 'import' })
  const reports: ({ readonly directory: string } & StoreTakenIn)[] = []
  for (const one of directories) {
    const path = resolve(context.io.cwd, one)
    if (path === resolve(directory))
      throw new PaddockError('USAGE', `${one} is the data directory itself`, {
        fix: 'Give the data directory to import from, and name the one to import into with --data.',
      })
    await using from = await openReader(path)
    reports.push({ directory: path, ...(await takeInStore(store, from, { by: path, signal: context.io.signal })) })
  }
  context.result(reports, () =>
    reports
      .map(({ directory: path, taken, repeated, unfinished, different }) =>
        [
          `${path}  ${plural(taken, 'rollout')} imported, ${repeated} here already, ${unfinished} not ended there`,
          ...different.map((id) => context.paint('bad', `  ${id} is here with other content, and stays as it is`)),
        ].join('\n'),
      )
      .join('\n'),
  )
  return reports.every(({ different }) => different.length === 0) ? exitCode.ok : exitCode.problems
}

function real(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number.')
  return value
}
