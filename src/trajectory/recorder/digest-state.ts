import { createHash, hash, type Hash } from 'node:crypto'

/** SHA-256 of the first `at` bytes of a body, not finished: a body that shares them is digested from there on. */
export interface DigestState {
  readonly at: number
  readonly state: Hash
}

/** Below this a state costs more than it saves. */
const worthKeeping = 16 * 1024

/**
 * The digest of a body that has the first `shared` bytes in common with the body that `from` is of. Without it every
 * call would digest the whole conversation again.
 */
export function digestFrom(
  from: DigestState | null,
  body: Uint8Array,
  shared: number,
): { readonly sha256: Uint8Array; readonly state: DigestState | null } {
  // As text, whose bytes come out of a pool: memory of their own costs more than the digest.
  if (body.byteLength < worthKeeping) return { sha256: Buffer.from(hash('sha256', body, 'hex'), 'hex'), state: null }
  const known = from !== null && from.at <= shared ? from : null
  const running = known === null ? createHash('sha256') : known.state.copy()
  running.update(body.subarray(known?.at ?? 0, shared))
  const state = { at: shared, state: running.copy() }
  return { sha256: running.update(body.subarray(shared)).digest(), state }
}
