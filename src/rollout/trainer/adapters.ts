import { type Id, PaddockError } from '../../core/index.ts'
import type { Adapter, LiveWeights } from '../../proxy/index.ts'
import type { Store } from '../../trajectory/index.ts'

/** Announced weights as the engine has them. */
export async function liveWeights({ trainer }: Pick<Store, 'trainer'>, runId: Id, label: string): Promise<LiveWeights> {
  const adapter = (await trainer.adapters(runId)).findLast((one) => one.label === label)
  if (adapter === undefined) return { version: label }
  return { version: label, adapter: { name: adapter.name, path: adapter.path } }
}

/**
 * An adapter that was changed in its place would have sampled what the record says that the older one did. Throws `STORE_CONFLICT` where its name
 * stands for other weights, or the weights for another one.
 */
export async function requireOwnAdapter(
  { trainer }: Pick<Store, 'trainer'>,
  runId: Id,
  { label, adapter }: { readonly label: string; readonly adapter: Adapter | null },
): Promise<void> {
  const known = await trainer.adapters(runId)
  const own = known.findLast((one) => one.label === label)
  const isAnnounced = (await trainer.versions(runId)).some((one) => one.label === label)
  if (isAnnounced && (own?.name ?? null) !== (adapter?.name ?? null)) {
    throw conflict(`weights ${label} have the adapter ${own?.name ?? 'none'}, not ${adapter?.name ?? 'none'}`)
  }
  const other = known.find((one) => one.name === adapter?.name && one.label !== label)
  if (other !== undefined) throw conflict(`the adapter ${other.name} is weights ${other.label}, not ${label}`)
}

function conflict(problem: string): PaddockError {
  return new PaddockError('STORE_CONFLICT', problem, {
    fix: 'Give the adapter of each version a name and a path of its own.',
  })
}
