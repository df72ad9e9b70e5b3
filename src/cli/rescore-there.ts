import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { OwnerAddress } from '../access/index.ts'
import { type Id, isPaddockError } from '../core/index.ts'
import type { Rescored } from '../rollout/index.ts'
import { ownerError } from './at-owner.ts'

/** As many ids are asked for at once. */
const most = 20_000

/** What `POST /rescores` of the owner says, in the order of the rollouts. Throws what it answers; ending the signal ends it there too. */
export async function rescoreThere(
  owner: OwnerAddress,
  asked: { readonly rollouts: readonly Id[]; readonly dryRun: boolean; readonly parallel: number },
  signal: AbortSignal,
): Promise<readonly Rescored[]> {
  const found = new Map<Id, Rescored>()
  for (let from = 0; from < asked.rollouts.length; from += most) {
    const answer = await fetch(`${owner.origin}/rescores`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...asked, rollouts: asked.rollouts.slice(from, from + most) }),
      signal,
    })
    if (!answer.ok || answer.body === null) throw ownerError(await answer.json(), owner, 'refuses it')
    let done = false
    // Of the same platform, under two names of types.
    const body = Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0])
    try {
      for await (const line of createInterface({ input: body })) {
        if (line === '') continue
        // The owner is this same program.
        const told = JSON.parse(line) as
          | { readonly rescored: Rescored }
          | { readonly done: true }
          | { readonly error: object }
        if ('error' in told) throw ownerError(told, owner, 'could not verify them')
        if ('done' in told) done = true
        else found.set(told.rescored.rolloutId, told.rescored)
      }
    } catch (error) {
      signal.throwIfAborted()
      // What else ends the answer is the end of the owner.
      if (isPaddockError(error)) throw error
    }
    if (!done) throw ownerError(null, owner, 'ended before all were verified')
  }
  return asked.rollouts.flatMap((id) => found.get(id) ?? [])
}
