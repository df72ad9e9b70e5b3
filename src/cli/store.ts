import { stat } from 'node:fs/promises'
import { PaddockError } from '../core/index.ts'
import type { StoreReader } from '../trajectory/index.ts'
import type { CommandContext } from './cli.ts'

/** Opens the data directory for reading, beside a live owner too. Throws `NOT_FOUND` where nothing was recorded yet. */
export async function openForReading(context: CommandContext): Promise<StoreReader> {
  const { directory, catalogue } = context.loaded.config.store
  const exists = await stat(directory).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!exists) {
    throw new PaddockError('NOT_FOUND', `there is no data directory ${directory}`, {
      fix: 'Record something first (`paddock serve`, `paddock run`), or name another directory with --data.',
    })
  }
  const { openReader } = await import('../trajectory/index.ts')
  return openReader(directory, { catalogue })
}
