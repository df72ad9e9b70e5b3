import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { BackupReport, FsckReport } from '../../trajectory/index.ts'
import type { Cli } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { writeTar } from '../write-tar.ts'
import { bytes, plural } from '../present/units.ts'
import { namedStore } from '../store.ts'

/** `paddock backup`: a copy of the store as it was at one moment, while it is recorded to. */
export function addBackup(program: Command, cli: Cli): void {
  program
    .command('backup')
    .description(
      'copy the store as it is at one moment, also while rollouts are recorded; the copy is checked as fsck does',
    )
    .argument('[data]', 'data directory (default: --data)')
    .requiredOption('--into <place>', 'a new folder, or a new file that ends in .tar')
    .addHelpText(
      'after',
      `
Example:
  $ paddock backup .paddock --into backup-monday

A folder is a data directory as it is, with a catalogue of its own: \`paddock list --data backup-monday --catalogue none\`.
Tokens and the control token are not in it.`,
    )
    .action(async (data: string | undefined, { into }: { readonly into: string }, command: Command) =>
      cli.run(command, namedStore(cli, data), async (context) => {
        const { directory, catalogue } = context.loaded.config.store
        const place = resolve(context.io.cwd, into)
        const [report, check] = await (place.endsWith('.tar') ? intoFile : intoFolder)(directory, place, catalogue)
        context.result({ ...report, problems: check.problems }, () =>
          [
            ...check.problems.map(({ where, what }) => context.paint('bad', `problem  ${where}: ${what}`)),
            `${report.into}  ${bytes(report.sizeBytes)}, ${plural(check.counts.rollouts, 'rollout')}, ${plural(check.counts.calls, 'call')}, ${plural(report.blobs, 'blob')}`,
          ].join('\n'),
        )
        return check.problems.length === 0 ? exitCode.ok : exitCode.problems
      }),
    )
}

type Made = readonly [BackupReport, FsckReport]

async function intoFolder(directory: string, folder: string, catalogue: string | null): Promise<Made> {
  const { backup, fsck } = await import('../../trajectory/index.ts')
  const report = await backup(directory, folder, { catalogue })
  return [report, await fsck(folder)]
}

async function intoFile(directory: string, file: string, catalogue: string | null): Promise<Made> {
  if (existsSync(file)) throw new PaddockError('USAGE', `${file} is there already`, { fix: 'Name a new file.' })
  // Beside the file, for a temporary directory may be in memory.
  const beside = await mkdtemp(join(dirname(file), '.paddock-backup-'))
  try {
    const name = basename(file, '.tar')
    const [report, check] = await intoFolder(directory, join(beside, name), catalogue)
    await writeTar(beside, name, file)
    return [{ ...report, into: file }, check]
  } finally {
    await rm(beside, { recursive: true, force: true })
  }
}
