import type { OwnerAddress } from '../access/index.ts'
import type { CommandContext } from './cli.ts'

/** The process that owns the data directory, waited for while it starts or stops; null where nobody does. */
export async function ownerOf(context: CommandContext): Promise<OwnerAddress | null> {
  const { findOwner } = await import('../access/index.ts')
  const { store, control } = context.loaded.config
  return findOwner(store.directory, {
    token: control.token,
    signal: context.io.signal,
    onWait: (pid) => context.notice(`The data directory belongs to pid ${pid}: waiting for it …`),
  })
}
