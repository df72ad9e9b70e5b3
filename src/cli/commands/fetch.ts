import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type Cli, repeated } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { printable } from '../present/colour.ts'
import { plural } from '../present/units.ts'

interface FetchOptions {
  readonly registry: string
  readonly into?: string
  readonly task?: readonly string[]
}

/** `paddock fetch`: the task folders of a published data set, by name and version. */
export function addFetch(program: Command, cli: Cli): void {
  program
    .command('fetch')
    .description('fetch the tasks of a published data set by name and version, each at its commit')
    .argument('<dataset>', '<name>@<version>, as the registry names it')
    .requiredOption('--registry <place>', 'registry file of Harbor or Terminal-Bench: a path, or an https: address')
    .option('--into <folder>', 'a new folder (default: tasks/<name>-<version>)')
    .option('--task <name>', 'only this task; may be repeated', repeated)
    .addHelpText(
      'after',
      `
Example:
  $ paddock fetch terminal-bench@2.0 --registry registry.json
  $ paddock validate tasks/terminal-bench-2.0 --published --public-network without

Runs git, and nothing of what it fetched. The folder has a \`dataset.json\` with the commit of each task.`,
    )
    .action(async (asked: string, options: FetchOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { findDataset } = await import('../datasets/registry.ts')
        const { takeDataset } = await import('../datasets/checkout.ts')
        const { cwd, signal } = context.io
        const dataset = await findDataset(options.registry, asked, { cwd, signal })
        const place = options.into ?? `tasks/${`${dataset.name}-${dataset.version}`.replaceAll(/[^\w.-]/g, '-')}`
        const into = resolve(cwd, place)
        const tasks = await takeDataset(dataset, { into, only: options.task ?? [], signal })
        const pinned = dataset.sources.every(({ from }) => from.kind === 'git' && /^[0-9a-f]{40}$/.test(from.ref ?? ''))
        context.result({ name: dataset.name, version: dataset.version, into, pinned, tasks }, () => {
          const loose = pinned ? '' : '; no commit is named for some of them: fetched again they may be others'
          return printable(`${plural(tasks.length, 'task')} of ${dataset.name}@${dataset.version} in ${place}${loose}`)
        })
        return exitCode.ok
      }),
    )
}
