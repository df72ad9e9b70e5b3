import type { FailureLine, GroupLine, Part, RunPage, RunPulse } from '../../src/server/view/contract.ts'
import { LiveState, usePulse } from './live.tsx'
import { Shown, useRead } from './load.tsx'
import { place, withQuery } from './router.ts'
import { RolloutTable } from './rollout-table.tsx'
import { RunCurves } from './run-curves.tsx'
import { RunNulls } from './run-nulls.tsx'
import { RunTasks } from './task-view.tsx'
import { moment, number, shortId, visible, Words } from './text.tsx'

const tabs = ['rollouts', 'groups', 'tasks', 'curves', 'failures', 'nulls', 'settings'] as const

/** A run: what it came to, and its rollouts, groups, tasks, curves, failures and missing numbers. */
export function RunView({ id }: { readonly id: string }) {
  const pulse = usePulse<RunPulse>(`/view/api/runs/${id}/pulse`, ({ isWhole }) => !isWhole)
  const version = pulse.value?.version ?? 0
  const run = useRead<RunPage>(`/view/api/runs/${id}`, undefined, version)
  const tab = tabs.find((name) => name === place.value.query['tab']) ?? 'rollouts'
  return (
    <>
      <p class="crumbs">
        <a href="/">Runs</a> / {shortId(id)}
      </p>
      <Shown of={run}>
        {(page) => (
          <>
            <h1>
              <Words text={page.run.name} /> <small>{moment(page.run.createdAt)}</small>
            </h1>
            <LiveState pulse={pulse} going={goingOn(pulse.value)} />
            <Summary page={page} />
            <p>
              <a href={`/search?run=${id}`}>Search in this run</a>
            </p>
            <nav class="tabs" aria-label="Parts of the run">
              {tabs.map((name) => (
                <a key={name} href={`/runs/${id}?tab=${name}`} aria-current={name === tab ? 'page' : undefined}>
                  {name}
                </a>
              ))}
            </nav>
            {tab === 'rollouts' ? <RolloutTable runId={id} version={version} /> : null}
            {tab === 'groups' ? <Groups runId={id} version={version} /> : null}
            {tab === 'tasks' ? <RunTasks runId={id} version={version} /> : null}
            {tab === 'curves' ? <RunCurves runId={id} version={version} /> : null}
            {tab === 'failures' ? <Failures runId={id} failures={page.failures} /> : null}
            {tab === 'nulls' ? <RunNulls runId={id} version={version} /> : null}
            {tab === 'settings' ? <pre>{visible(JSON.stringify(page.run.config, null, 2))}</pre> : null}
          </>
        )}
      </Shown>
    </>
  )
}

function goingOn(pulse: RunPulse | null): string {
  if (pulse === null) return ''
  if (pulse.rollouts < pulse.of) return `${number(pulse.rollouts)} of ${number(pulse.of)} rollouts read so far`
  if (!pulse.isWhole) return 'what its trainer was handed is being read'
  return pulse.running === 0 ? 'nothing is running' : `${number(pulse.running)} running`
}

function Summary({ page }: { readonly page: RunPage }) {
  const { tally, rewards } = page
  const most = Math.max(1, ...rewards.bins)
  return (
    <div class="summary">
      <dl>
        <div>
          <dt>rollouts</dt>
          <dd>{number(tally.rollouts)}</dd>
        </div>
        <div>
          <dt title="ended by the agent itself, with a number, untainted">effective</dt>
          <dd>{number(tally.effective)}</dd>
        </div>
        <div>
          <dt>running</dt>
          <dd>{number(tally.running)}</dd>
        </div>
        <div>
          <dt title="over effective rollouts">mean reward</dt>
          <dd>{number(tally.meanReward)}</dd>
        </div>
        <div>
          <dt title="over every rollout that has a number">mean of all</dt>
          <dd>{number(tally.meanOfAll)}</dd>
        </div>
      </dl>
      <figure class="bars" aria-label="Rewards of effective rollouts in ten bins">
        {rewards.bins.map((count, at) => (
          <span
            key={at}
            title={`${number(rewards.least + ((rewards.most - rewards.least) * at) / 10)} and up: ${count}`}
            style={{ height: `${Math.round((count / most) * 100)}%` }}
          />
        ))}
      </figure>
    </div>
  )
}

function Groups({ runId, version }: { readonly runId: string; readonly version: number }) {
  const after = place.value.query['after'] ?? '0'
  const groups = useRead<Part<GroupLine>>(
    `/view/api/runs/${runId}/groups?after=${encodeURIComponent(after)}`,
    undefined,
    version,
  )
  return (
    <Shown of={groups}>
      {(page) => (
        <>
          <p class="quiet">{number(page.total)} groups</p>
          <table>
            <thead>
              <tr>
                <th scope="col">Group</th>
                <th scope="col">Task</th>
                <th scope="col">Rollouts</th>
                <th scope="col">Effective</th>
                <th scope="col">Mean</th>
                <th scope="col">Spread</th>
              </tr>
            </thead>
            <tbody>
              {page.rows.map((group) => (
                <tr key={group.id}>
                  <td>
                    <a href={`/groups/${group.id}`}>{shortId(group.id)}</a>
                  </td>
                  <td>
                    <Words text={group.task} />
                  </td>
                  <td>{group.rollouts}</td>
                  <td>{group.effective}</td>
                  <td>{number(group.meanReward)}</td>
                  <td>
                    {group.spread === 0 ? (
                      <em title="every number is the same: nothing to learn">flat</em>
                    ) : (
                      number(group.spread)
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {page.next === null ? null : <a href={withQuery({ after: String(page.next) })}>Next groups</a>}
        </>
      )}
    </Shown>
  )
}

function Failures(o: { readonly runId: string; readonly failures: readonly FailureLine[] }) {
  if (o.failures.length === 0) return <p class="quiet">No rollout failed.</p>
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Cause</th>
          <th scope="col">Whose</th>
          <th scope="col">Rollouts</th>
          <th scope="col">One of them</th>
          <th scope="col">What it says</th>
        </tr>
      </thead>
      <tbody>
        {o.failures.map((failure) => (
          <tr key={failure.cause}>
            <td>
              <a href={`/runs/${o.runId}?tab=rollouts&cause=${encodeURIComponent(failure.cause)}`}>{failure.cause}</a>
            </td>
            <td>{failure.kind}</td>
            <td>{failure.count}</td>
            <td>
              <a href={`/rollouts/${failure.example}`}>{shortId(failure.example)}</a>
            </td>
            <td>
              <Words text={failure.detail} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
