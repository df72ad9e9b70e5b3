import { type Id, PaddockError } from '../../core/index.ts'

/** Where a reader of a run's events stands. Opaque to it. */
export function cursorOf(runId: Id, incarnation: number | null, seq: number): string {
  return `${runId}:${incarnation ?? 0}:${seq}`
}

/** The place of a cursor. Throws `BODY_INVALID_SHAPE` for what is none of this run. */
export function placeOf(
  runId: Id,
  cursor: string | undefined,
): { readonly incarnation: number; readonly after: number } {
  if (cursor === undefined) return { incarnation: 0, after: 0 }
  const [, run, incarnation, seq] = /^([^:]*):(\d{1,15}):(\d{1,15})$/.exec(cursor) ?? []
  if (run === runId) return { incarnation: Number(incarnation), after: Number(seq) }
  throw new PaddockError('BODY_INVALID_SHAPE', `query.after: ${cursor} is no cursor of run ${runId}`, {
    fix: 'Give the cursor of an event of this run, or leave `after` out.',
  })
}
