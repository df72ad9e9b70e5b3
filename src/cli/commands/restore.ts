import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { plural } from '../present/units.ts'

/** `paddock restore`: a data directory from a backup, with its catalogue beside it or in PostgreSQL. */
export function addRestore(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description('make a data directory of a backup; it is checked as fsck does')
    .argument('<backup>', 'folder or .tar that `paddock backup` wrote')
    .requiredOption('--into <directory>', 'a data directory that is empty or not there yet')
    .addHelpText(
      'after',
      `
Example:
  $ paddock restore backup-monday.tar --into .paddock
  $ paddock restore backup-monday --into .paddock --catalogue postgres://paddock@db/paddock

With --catalogue, or where one is configured, the catalogue goes into that database, which has to have nothing of this
directory. Data directories that share a catalogue are restored one after the other into the same database.`,
    )
    .action(async (backup: string, { into }: { readonly into: string }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { fsck, restore } = await import('../../trajectory/index.ts')
        const { cwd } = context.io
        const { catalogue } = context.loaded.config.store
        const report = await restore(resolve(cwd, backup), resolve(cwd, into), { catalogue })
        const check = await fsck(report.into, { catalogue })
        context.result({ ...report, problems: check.problems }, () =>
          [
            ...check.problems.map(({ where, what }) => context.paint('bad', `problem  ${where}: ${what}`)),
            `${report.into}  ${plural(check.counts.rollouts, 'rollout')}, ${plural(check.counts.calls, 'call')}, ${plural(check.counts.blobs, 'blob')}`,
          ].join('\n'),
        )
        return check.problems.length === 0 ? exitCode.ok : exitCode.problems
      }),
    )
}
