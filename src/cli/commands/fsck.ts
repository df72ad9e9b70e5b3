import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { plural } from '../present/units.ts'
import { namedStore } from '../store.ts'

/** `paddock fsck`: checks the store and never writes. Exit code 1 when something is wrong. */
export function addFsck(program: Command, cli: Cli): void {
  program
    .command('fsck')
    .description(
      'check the store: digests of every record and row, records that are missing, trees, bodies, blobs; never writes',
    )
    .argument('[data]', 'data directory (default: --data)')
    .addHelpText('after', '\nExample:\n  $ paddock fsck .paddock')
    .action(async (data: string | undefined, _options: unknown, command: Command) =>
      cli.run(command, namedStore(cli, data), async (context) => {
        const { fsck } = await import('../../trajectory/index.ts')
        const { directory, catalogue } = context.loaded.config.store
        const report = await fsck(directory, { catalogue })
        context.result(report, () => {
          const counts = Object.entries(report.counts).map(([name, count]) => `${name} ${count}`)
          const problems = report.problems.map((problem) =>
            context.paint('bad', `problem  ${problem.where}: ${problem.what}`),
          )
          const verdict =
            report.problems.length === 0
              ? context.paint('good', 'no problems')
              : context.paint('bad', plural(report.problems.length, 'problem'))
          return [...problems, `${verdict}  (${counts.join(', ')})`].join('\n')
        })
        return report.problems.length === 0 ? exitCode.ok : exitCode.problems
      }),
    )
}
