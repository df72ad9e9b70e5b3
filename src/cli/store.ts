import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PaddockError } from '../core/index.ts'
import type { StoreReader } from '../trajectory/index.ts'
import type { Cli, CommandContext } from './cli.ts'

/** For `cli.run`: the data directory that a command names as its argument wins over `--data`. */
export function namedStore(cli: Cli, data: string | undefined) {
  return data === undefined ? {} : { store: { directory: resolve(cli.io.cwd, data) } }
}

/** Opens the data directory for reading, beside a live owner too. Throws `NOT_FOUND` where nothing was recorded yet. */
export async function openForReading(context: CommandContext): Promise<StoreReader> {
  const { directory, catalogue } = context.loaded.config.store
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  if (found === null) {
    throw new PaddockError('NOT_FOUND', `there is no data directory ${directory}`, {
      fix: 'Record something first (`paddock serve`, `paddock run`), or name another directory with --data.',
    })
  }
  if (!found.isDirectory()) {
    throw new PaddockError('NOT_FOUND', `${directory} is a file, not a data directory`, {
      fix: 'Give the folder that `paddock serve` or `paddock run` recorded into, with --data.',
    })
  }
  const { openReader } = await import('../trajectory/index.ts')
  return openReader(directory, { catalogue })
}
