import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { table } from '../present/table.ts'
import { sandboxOf } from '../sandbox.ts'

/** `paddock gc`: removes what dead processes left in the sandbox. */
export function addGc(program: Command, cli: Cli): void {
  gc(program.command('gc'), cli)
}

/** Makes a command into `gc`; `paddock box gc` is the same under another name. */
export function gc(command: Command, cli: Cli): void {
  command
    .description(
      'remove containers, volumes, networks, snapshots and socket directories that ended processes left behind, and the task images that were not used for longest while the disk is nearly full',
    )
    .option('--dry-run', 'only say what would be removed, and why')
    .addHelpText('after', '\nExample:\n  $ paddock gc --dry-run')
    .action(async (options: { readonly dryRun?: boolean }, command: Command) =>
      cli.run(command, {}, async (context) => {
        const sandbox = await sandboxOf(context.loaded.config)
        try {
          const dryRun = options.dryRun ?? false
          const report = await sandbox.sweep({ dryRun })
          context.result({ dryRun, ...report }, () => {
            const rows = [
              ...report.removed.map((one) => [dryRun ? 'would remove' : 'removed', one.kind, one.id, one.why]),
              ...report.failed.map((one) => ['failed', one.kind, one.id, `${one.why}: ${one.error}`]),
              ...(dryRun ? report.kept.map((one) => ['keep', one.kind, one.id, one.why]) : []),
            ]
            if (rows.length === 0) return 'Nothing was left behind.'
            return table([{ title: '' }, { title: 'kind' }, { title: 'id' }, { title: 'why' }], rows, {
              paint: context.paint,
              columns: context.io.columns,
            })
          })
          return report.failed.length === 0 ? exitCode.ok : exitCode.problems
        } finally {
          await sandbox.close()
        }
      }),
    )
}
