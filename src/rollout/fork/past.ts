import { type Id, PaddockError } from '../../core/index.ts'
import type { SessionPast } from '../../proxy/index.ts'
import {
  type ForkFrom,
  forkLabel,
  type RecorderReader,
  type SessionLog,
  type SessionRecord,
} from '../../trajectory/index.ts'

/** What a forked rollout's session goes on from, read anew for each: nothing of it is changed. Throws `FORK_REFUSED`, `STORE_*`. */
export async function pastOf(
  recorder: Pick<RecorderReader, 'session' | 'sessions'>,
  { rolloutId, callId, onDivergence, way }: ForkFrom,
): Promise<SessionPast> {
  for (const { id, role } of await recorder.sessions({ rolloutId })) {
    if (role !== 'agent') continue
    const log = await recorder.session(id)
    if (!log.calls.some(({ intent }) => intent.id === callId)) continue
    return {
      log,
      ancestors: await ancestorsOf(recorder, log),
      until: callId,
      onDivergence,
      by: way === 'replay' ? 'asked' : 'given',
    }
  }
  throw refused(`no call ${callId} of its agent is in rollout ${rolloutId}`)
}

async function ancestorsOf(
  recorder: Pick<RecorderReader, 'session'>,
  log: SessionLog,
): Promise<readonly SessionRecord[]> {
  const found = [log.session]
  for (let at = log.session.forkedFrom; at !== null;) {
    const { session } = await recorder.session(at.sessionId, { bodies: [] })
    found.push(session)
    at = session.forkedFrom
  }
  return found
}

/** Labels that say of each rollout what it goes on from. */
export function forkLabels(fork: ForkFrom | null): Readonly<Record<string, string>> {
  return fork === null ? {} : { [forkLabel]: fork.rolloutId, 'fork.call': fork.callId }
}

/** The call that a person means: its id or the end of it, or `3` for the third of the conversation's own. Throws `FORK_REFUSED`. */
export async function callNamed(
  recorder: Pick<RecorderReader, 'session' | 'sessions'>,
  rolloutId: Id,
  named: string,
): Promise<Id> {
  const found: Id[] = []
  for (const { id, role } of await recorder.sessions({ rolloutId })) {
    if (role !== 'agent') continue
    const { calls } = await recorder.session(id, { bodies: [] })
    const main = calls.filter(({ intent }) => intent.callClass === 'main').map(({ intent }) => intent.id)
    if (/^\d{1,3}$/.test(named)) found.push(...main.slice(Number(named) - 1, Number(named)))
    else found.push(...main.filter((one) => one.startsWith(named) || one.endsWith(named)))
  }
  const [only, second] = found
  if (only !== undefined && second === undefined) return only
  throw refused(
    `${found.length === 0 ? 'no call' : 'more than one call'} of its agent's conversation is named ${named}`,
  )
}

/** Why there is no fork. */
export function refused(why: string): PaddockError {
  return new PaddockError('FORK_REFUSED', `There is no fork there: ${why}.`)
}
