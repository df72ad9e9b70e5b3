import type { RolloutDetail } from '../../src/server/view/contract.ts'
import { Shown, useRead } from './load.tsx'
import { rewardClass } from './rollout-table.tsx'
import { duration, moment, number, shortId, visible, Words } from './text.tsx'

/** A rollout: how it ended, what it was given for it and why, its sessions and its log. */
export function RolloutPage({ id }: { readonly id: string }) {
  const detail = useRead<RolloutDetail>(`/view/api/rollouts/${id}`)
  return (
    <Shown of={detail}>
      {({ rollout, task, verdicts, sessions, events, eventCount }) => (
        <>
          <p class="crumbs">
            <a href="/">Runs</a> / <a href={`/runs/${rollout.runId}`}>{shortId(rollout.runId)}</a> /{' '}
            <a href={`/groups/${rollout.groupId}`}>group {shortId(rollout.groupId)}</a> / {shortId(id)}
          </p>
          <h1>
            <Words text={task.name} /> <small>rollout {shortId(id)}</small>
          </h1>
          <dl class="facts">
            <dt>environment</dt>
            <dd>{task.environment}</dd>
            <dt>harness</dt>
            <dd>
              <Words text={rollout.harness} />, slot {rollout.slot}, attempt {rollout.attempt + 1}
            </dd>
            <dt>end</dt>
            <dd>
              {rollout.end ?? 'running'} <Words text={rollout.endDetail} />
            </dd>
            <dt>time</dt>
            <dd>
              {moment(rollout.startedAt)}, {duration(rollout.startedAt, rollout.endedAt)}
            </dd>
            {rollout.taints.length === 0 ? null : (
              <>
                <dt>tainted</dt>
                <dd>
                  <Words text={rollout.taints.join(', ')} />
                </dd>
              </>
            )}
            {Object.entries(rollout.labels).map(([name, value]) => (
              <>
                <dt>
                  <Words text={name} />
                </dt>
                <dd>
                  <Words text={value} />
                </dd>
              </>
            ))}
          </dl>
          <h2>Sessions</h2>
          {sessions.length === 0 ? <p class="quiet">It made none: no model call reached Paddock.</p> : null}
          <ul>
            {sessions.map((session) => (
              <li key={session.id}>
                <a href={`/sessions/${session.id}`}>{shortId(session.id)}</a> {session.role},{' '}
                {moment(session.createdAt)}
              </li>
            ))}
          </ul>
          <h2>Verdict</h2>
          {verdicts.length === 0 ? <p class="quiet">There is none.</p> : null}
          {verdicts.map((verdict, at) => (
            <section key={verdict.id} class={at === 0 ? 'verdict' : 'verdict old'}>
              <p>
                <strong class={rewardClass(verdict.reward)}>{number(verdict.reward)}</strong> {verdict.status}
                {at === 0 ? ', in force' : ', replaced'}; verifier {verdict.verifier.id} {verdict.verifier.version},
                trust {verdict.trust}, {moment(verdict.at)}
              </p>
              {verdict.reward === null ? (
                <p>
                  <Words text={verdict.reason} />
                </p>
              ) : null}
              {Object.entries(verdict.components).map(([name, value]) => (
                <p key={name} class="component">
                  <Words text={name} /> {number(value)}
                </p>
              ))}
              {verdict.evidence.trim() === '' ? null : <pre>{visible(verdict.evidence.slice(0, 64_000))}</pre>}
            </section>
          ))}
          <h2>Instruction</h2>
          <pre>{visible(task.instruction)}</pre>
          <details>
            <summary>
              Log of the rollout: {number(eventCount)} events
              {eventCount > events.length ? `, the first ${events.length}` : ''}
            </summary>
            <pre>{events.map((event) => visible(JSON.stringify(event))).join('\n')}</pre>
          </details>
        </>
      )}
    </Shown>
  )
}
