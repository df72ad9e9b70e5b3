import type { Id, Verdict } from '../core/index.ts'
import { appendLate, giveLabel } from '../rollout/index.ts'
import type { Annotator, Viewer } from '../server/index.ts'
import type { OwnerAddress } from '../access/index.ts'
import { openStore, type Store, type StoreReader } from '../trajectory/index.ts'
import type { CommandContext } from './cli.ts'
import { ownerOf } from './find-owner.ts'
import { openForReading } from './store.ts'
import { ownerError } from './at-owner.ts'

/** A store as a viewer reads and annotates it. */
export interface Annotating extends AsyncDisposable {
  readonly reader: StoreReader
  readonly annotator: Annotator
}

/**
 * Takes a data directory that nobody owns, until this is disposed of; writes to one that is owned go through its owner, under
 * the token of whoever writes. Throws `NOT_FOUND` where nothing was recorded yet, `STORE_*`.
 */
export async function openForAnnotating(context: CommandContext): Promise<Annotating> {
  const reader = await openForReading(context)
  try {
    const owner = await ownerOf(context)
    if (owner !== null) {
      context.notice(`The data directory belongs to pid ${owner.pid}: annotations go through it.`)
      return { reader, annotator: throughOwner(owner), [Symbol.asyncDispose]: () => reader.close() }
    }
  } catch (error) {
    await reader.close()
    throw error
  }
  await reader.close()
  const { directory, synchronous, catalogue } = context.loaded.config.store
  const store = await openStore(directory, { synchronous, catalogue, work: 'view --annotate' })
  return { reader: store, annotator: toStore(store), [Symbol.asyncDispose]: () => store.close() }
}

function toStore(store: Store): Annotator {
  return {
    verdict: (rolloutId, given, { name }) => appendLate(store, rolloutId, { ...given, token: name }),
    label: (rolloutId, given, { name }) => giveLabel(store, rolloutId, { ...given, token: name }),
  }
}

function throughOwner(owner: OwnerAddress): Annotator {
  const post = async (path: string, body: unknown, { token }: Viewer): Promise<unknown> => {
    const answer = await fetch(`${owner.origin}${path}`, {
      method: 'POST',
      // Who came by the link acts with the machine's own token; the owner looks at the role of all others itself.
      headers: { authorization: `Bearer ${token ?? owner.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const told: unknown = await answer.json()
    if (!answer.ok) throw ownerError(told, owner, 'refuses it')
    return told
  }
  return {
    verdict: async (rolloutId: Id, given, viewer) => {
      const { verdict } = (await post(`/rollouts/${rolloutId}/verdicts`, given, viewer)) as {
        readonly verdict: Verdict
      }
      return verdict
    },
    label: async (rolloutId: Id, given, viewer) => {
      await post(`/rollouts/${rolloutId}/labels`, given, viewer)
    },
  }
}
