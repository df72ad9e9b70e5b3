import { type Id, PaddockError, type RolloutEnd, type Verdict } from '../../../core/index.ts'
import type { HandedIn } from '../../contract/index.ts'
import type { Connection } from './database.ts'

/** What hand-ins said of a rollout. */
export interface RolloutOutcome {
  readonly end: HandedIn['end'] | null
  readonly taints: readonly string[]
  readonly verdicts: readonly Verdict[]
}

/** Appends what a job made. Throws `STORE_CONFLICT` where the rollout ended otherwise or a verdict stands already. */
export async function keep(db: Connection, { rolloutId, taints, verdict, end }: HandedIn): Promise<void> {
  if (taints.length > 0) {
    await db.query(
      `INSERT INTO paddock.taints (rollout, cause) SELECT $1, cause FROM unnest($2::text[]) WITH ORDINALITY AS t (cause, at)
       ORDER BY at ON CONFLICT DO NOTHING`,
      [rolloutId, taints],
    )
  }
  if (verdict !== null) await appendVerdict(db, verdict)
  await db.query(
    'INSERT INTO paddock.rollout_ends (rollout, at, "end", detail) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
    [rolloutId, end.at, end.end, end.detail],
  )
  const [known] = await db.query<{ at: number; end: RolloutEnd; detail: string }>(
    'SELECT at, "end", detail FROM paddock.rollout_ends WHERE rollout = $1',
    [rolloutId],
  )
  if (known === undefined || known.end !== end.end || known.detail !== end.detail || known.at !== end.at) {
    throw new PaddockError('STORE_CONFLICT', `rollout ${rolloutId} has ended otherwise`)
  }
}

async function appendVerdict(db: Connection, verdict: Verdict): Promise<void> {
  const { id, rolloutId, supersedes } = verdict
  const record = JSON.stringify(verdict)
  if (supersedes !== null) {
    const earlier = await db.query('SELECT 1 FROM paddock.verdicts WHERE id = $1 AND rollout = $2', [
      supersedes,
      rolloutId,
    ])
    if (earlier.length === 0) {
      throw new PaddockError('STORE_CONFLICT', `verdict ${id} supersedes one that the rollout does not have`)
    }
  }
  await db.query('INSERT INTO paddock.verdicts (id, rollout, record) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING', [
    id,
    rolloutId,
    record,
  ])
  const [known] = await db.query<{ record: string }>('SELECT record FROM paddock.verdicts WHERE id = $1', [id])
  if (known?.record !== record) throw new PaddockError('STORE_CONFLICT', `another verdict stands under ${id}`)
}

export async function readOutcome(db: Connection, rolloutId: Id): Promise<RolloutOutcome> {
  const [end] = await db.query<HandedIn['end']>(
    'SELECT at, "end", detail FROM paddock.rollout_ends WHERE rollout = $1',
    [rolloutId],
  )
  const taints = await db.query<{ cause: string }>('SELECT cause FROM paddock.taints WHERE rollout = $1 ORDER BY n', [
    rolloutId,
  ])
  const verdicts = await db.query<{ record: string }>(
    'SELECT record FROM paddock.verdicts WHERE rollout = $1 ORDER BY n',
    [rolloutId],
  )
  return {
    end: end ?? null,
    taints: taints.map(({ cause }) => cause),
    // Written above.
    verdicts: verdicts.map(({ record }) => JSON.parse(record) as Verdict),
  }
}
