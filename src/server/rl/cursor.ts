import { type Id, PaddockError } from '../../core/index.ts'

/** Where a reader of a run's events stands. Opaque to it. */
export function cursorOf(runId: Id, incarnation: number | null, seq: number): string {
  return `${runId}:${incarnation ?? 0}:${seq}`
}

/** The place of a cursor. Throws `BODY_INVALID_SHAPE` for what is none of this run. */
export function placeOf(runId: Id, cursor: string | undefined): number {
  if (cursor === undefined) return 0
  const [run, , seq] = cursor.split(':')
  const place = Number(seq)
  if (run === runId && Number.isInteger(place) && place >= 0) return place
  throw new PaddockError('BODY_INVALID_SHAPE', `query.after: ${cursor} is no cursor of run ${runId}`, {
    fix: 'Give the cursor of an event of this run, or leave `after` out.',
  })
}
