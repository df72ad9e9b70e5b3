import { randomBytes } from 'node:crypto'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import type { SessionPast } from '../../proxy/index.ts'
import type { ForkFrom, RecorderReader } from '../../trajectory/index.ts'
import type { GoesOn } from '../agent.ts'
import type { RunParts } from '../run-parts.ts'
import { agentMsAt } from './clock.ts'
import type { KeptBox } from './box-check.ts'
import { pastOf, refused } from './past.ts'
import { answeredBefore, snapshotAt, type Standing } from './snapshot-at.ts'

/** Where a forked rollout begins. */
export interface ForkPlace {
  readonly past: SessionPast
  /** What its box is a copy of; null: a fresh one. */
  readonly image: string | null
  /** What the parent's box had there beyond that, a line for each: the child begins without it. */
  readonly without: readonly string[]
  /** Null: its harness is started anew. */
  readonly goesOn: GoesOn | null
  readonly usedMs: number
  /** Of the parent's box, where a replay comes to; null: it was not kept. */
  readonly kept: KeptBox | null
}

/** Throws `FORK_REFUSED`, `STORE_*`, `SANDBOX_*`. */
export async function placeOf(
  { store: { recorder, blobs }, sandbox }: Pick<RunParts, 'store' | 'sandbox'>,
  fork: ForkFrom,
): Promise<ForkPlace> {
  const past = await pastOf(recorder, fork)
  if (fork.way === 'replay') {
    const kept = await keptAt({ recorder, sandbox }, fork, past)
    return { past, image: null, without: [], goesOn: null, usedMs: 0, kept }
  }
  const call = past.log.calls.find(({ intent }) => intent.id === fork.callId)
  if (call === undefined) throw refused(`no call ${fork.callId}`)
  const { image, without } = await standingAt({ recorder, sandbox }, fork, past)
  if (fork.way === 'graft' && image === null)
    throw refused('its harness has no session to resume at its first call; fork by replay')
  const marker = fork.way === 'graft' ? `fork-${randomBytes(16).toString('hex')}` : null
  const graft = marker === null ? {} : { graft: { marker, keep: (bytes: Uint8Array) => blobs.put(bytes) } }
  return {
    past: { ...past, ...graft },
    image,
    without,
    kept: null,
    goesOn: { body: call.intent.body, marker },
    usedMs: agentMsAt(past.log, await recorder.events({ rolloutId: fork.rolloutId }), fork.callId),
  }
}

/** Null where nothing was kept, or it is gone: a replay needs none. */
async function keptAt(
  { recorder, sandbox }: { readonly recorder: RecorderReader; readonly sandbox: RunParts['sandbox'] },
  { rolloutId, callId }: ForkFrom,
  { log }: SessionPast,
): Promise<KeptBox | null> {
  const image = (await snapshotAt(recorder, rolloutId, { log, callId }))?.image ?? null
  if (image === null || sandbox === null) return null
  const isThere = await sandbox.ensureImage({ kind: 'reference', reference: image }).then(
    () => true,
    () => false,
  )
  return isThere ? { image, callId, answered: answeredBefore(log, callId).length } : null
}

/** Throws `FORK_REFUSED` for a box that was not kept, that is gone, or that had what no copy holds where that is no place to go on from. */
async function standingAt(
  { recorder, sandbox }: { readonly recorder: RecorderReader; readonly sandbox: RunParts['sandbox'] },
  fork: ForkFrom,
  past: SessionPast,
): Promise<Standing> {
  const found = await snapshotAt(recorder, fork.rolloutId, { log: past.log, callId: fork.callId })
  if (found === null) throw refused(`the box was not kept at call ${fork.callId}, as \`run.snapshotEvery\` does`)
  const { image, without } = found
  if (image === null) return found
  if (without.length > 0 && fork.onDivergence === 'refuse') {
    const what = `There is no fork there: its box had what no copy holds: ${without.slice(0, 5).join(', ')}.`
    throw new PaddockError('FORK_REFUSED', what, {
      fix: 'Fork by replay, or go on without it: `--on-divergence branch`.',
    })
  }
  try {
    await sandbox?.ensureImage({ kind: 'reference', reference: image })
    return found
  } catch (error) {
    if (!isPaddockError(error) || error.code === 'SANDBOX_UNAVAILABLE') throw error
    throw new PaddockError('FORK_REFUSED', `There is no fork there: ${image}, which its box was kept as, is gone.`, {
      cause: error,
      fix: 'Keep boxes beyond their run with `run.keepSnapshots`, or fork by replay.',
    })
  }
}
