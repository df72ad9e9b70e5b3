import type { GroupPage } from '../../src/server/view/contract.ts'
import { CompareLink } from './compare-view.tsx'
import { Shown, useRead } from './load.tsx'
import { rewardClass } from './rollout-table.tsx'
import { place, withQuery } from './router.ts'
import { duration, number, shortId, visible, Words } from './text.tsx'

/** A group: its members side by side, with what their rewards are made of. */
export function GroupView({ id }: { readonly id: string }) {
  const after = place.value.query['after'] ?? '0'
  const group = useRead<GroupPage>(`/view/api/groups/${id}?after=${encodeURIComponent(after)}`)
  return (
    <Shown of={group}>
      {({ group: one, names, rows, next }) => {
        return (
          <>
            <p class="crumbs">
              <a href="/">Runs</a> / <a href={`/runs/${one.runId}?tab=groups`}>{shortId(one.runId)}</a> / {shortId(id)}
            </p>
            <h1>
              <Words text={one.task} /> <small>group</small>
            </h1>
            <p>
              {number(one.rollouts)} rollouts, {number(one.effective)} effective, mean reward {number(one.meanReward)},
              spread{' '}
              {one.spread === 0 ? 'none: every number is the same, so there is nothing to learn' : number(one.spread)}.{' '}
              <a href={`/tasks/${one.taskDigest}`}>This task in all runs</a>
            </p>
            <details>
              <summary>Instruction</summary>
              <pre>{visible(one.instruction)}</pre>
            </details>
            <table>
              <thead>
                <tr>
                  <th scope="col">Rollout</th>
                  <th scope="col">Slot</th>
                  <th scope="col">Reward</th>
                  <th scope="col">
                    <span class="unseen">bar</span>
                  </th>
                  <th scope="col">Verdict</th>
                  <th scope="col">End</th>
                  {names.map((name) => (
                    <th scope="col" key={name}>
                      <Words text={name} />
                    </th>
                  ))}
                  <th scope="col">Duration</th>
                  <th scope="col">Why not</th>
                  <th scope="col">Compare</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((member) => (
                  <tr key={member.id}>
                    <td>
                      <a href={`/rollouts/${member.id}`}>{shortId(member.id)}</a>
                    </td>
                    <td>{member.slot}</td>
                    <td class={rewardClass(member.reward)}>{number(member.reward)}</td>
                    <td>
                      <span
                        class={`bar ${rewardClass(member.reward)}`}
                        style={{ width: `${Math.round((Math.abs(member.reward ?? 0) / one.mostReward) * 80)}px` }}
                      />
                    </td>
                    <td>{member.status ?? '–'}</td>
                    <td>
                      {member.end ?? 'running'}
                      {member.tainted ? ' (tainted)' : ''}
                    </td>
                    {names.map((name, at) => (
                      <td key={name}>{number(member.components[at] ?? null)}</td>
                    ))}
                    <td>{duration(member.startedAt, member.endedAt)}</td>
                    <td>{member.cause ?? ''}</td>
                    <td>
                      <CompareLink kind="rollouts" id={member.id} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            <p class="pager">
              {after === '0' ? null : <a href={withQuery({ after: null })}>From the first member</a>}{' '}
              {next === null ? null : <a href={withQuery({ after: String(next) })}>Later members</a>}
            </p>
          </>
        )
      }}
    </Shown>
  )
}
