import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { plural } from '../present/units.ts'

/** `paddock salvage`: what is whole of a damaged store, in a new one. Exit code 1 when something stayed behind. */
export function addSalvage(program: Command, cli: Cli): void {
  program
    .command('salvage')
    .description('take over what is whole of a damaged data directory into a new one, and say what is not')
    .argument('<data>', 'the damaged data directory; it is only read')
    .requiredOption('--into <new>', 'a directory that is empty or not there yet')
    .addHelpText('after', '\nExample:\n  $ paddock salvage .paddock --into .paddock-salvaged')
    .action(async (data: string, options: { readonly into: string }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { salvage } = await import('../../trajectory/index.ts')
        const { cwd } = context.io
        const report = await salvage(resolve(cwd, data), resolve(cwd, options.into))
        const { sessions, tainted, lost } = report
        context.result(report, () =>
          [
            ...lost.map((line) => context.paint('bad', `lost  ${line}`)),
            ...sessions.cut.map(({ id, kept }) =>
              context.paint(
                'bad',
                kept === 0 ? `lost  session ${id}` : `cut  session ${id} behind ${plural(kept, 'record')}`,
              ),
            ),
            `${plural(sessions.whole, 'whole session')}, ${plural(report.rollouts, 'rollout')} and ${plural(report.blobs, 'blob')} are now in ${report.into}.`,
            ...(tainted.length === 0
              ? []
              : [`${plural(tainted.length, 'rollout')} lost something and got the taint store_damage.`]),
          ].join('\n'),
        )
        return lost.length === 0 && sessions.cut.length === 0 ? exitCode.ok : exitCode.problems
      }),
    )
}
