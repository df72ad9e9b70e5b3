import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { table } from '../present/table.ts'
import { bytes } from '../present/units.ts'
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
          const report = await sandbox.sweep({ dryRun, buildCache: true })
          context.result({ dryRun, ...report }, () => {
            const rows = [
              ...report.removed.map((one) => [dryRun ? 'would remove' : 'removed', one.kind, one.id, one.why]),
              ...report.failed.map((one) => ['failed', one.kind, one.id, `${one.why}: ${one.error}`]),
              ...(dryRun ? report.kept.map((one) => ['keep', one.kind, one.id, one.why]) : []),
            ]
            const columns = [{ title: '' }, { title: 'kind' }, { title: 'id' }, { title: 'why' }]
            const { paint, io } = context
            const left =
              rows.length === 0 ? 'Nothing was left behind.' : table(columns, rows, { paint, columns: io.columns })
            return [left, ...cacheLine(report.buildCacheBytes)].join('\n')
          })
          return report.failed.length === 0 ? exitCode.ok : exitCode.problems
        } finally {
          await sandbox.close()
        }
      }),
    )
}

/** What is not removed here, because it is of everybody who builds in that daemon. */
function cacheLine(cached: number | null): readonly string[] {
  if (cached === null || cached < 2 ** 20) return []
  return [`BuildKit has cached ${bytes(cached)} of all builds in this daemon; \`docker builder prune\` clears it.`]
}
