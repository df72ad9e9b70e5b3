import type { NullLine, NullPage } from '../../src/server/view/contract.ts'
import { Shown, useRead } from './load.tsx'
import { place, withQuery } from './router.ts'
import { number, Words } from './text.tsx'

/** Which rollouts of a run have no number that counts, by cause, task and weights. */
export function RunNulls({ runId, version }: { readonly runId: string; readonly version: number }) {
  const after = place.value.query['after'] ?? '0'
  const nulls = useRead<NullPage>(
    `/view/api/runs/${runId}/nulls?limit=100&after=${encodeURIComponent(after)}`,
    undefined,
    version,
  )
  return (
    <Shown of={nulls}>
      {({ all, versions, rows, next, total }) => (
        <>
          <p>
            {number(all.nulls)} of {number(all.ended)} ended rollouts ({percent(all.nulls, all.ended)}) have no number
            that counts. The last attempt in each slot is counted; cancelled ones are not.
          </p>
          {all.emptyTools === 0 ? null : (
            <p>{number(all.emptyTools)} rollouts got empty results from their tools again and again.</p>
          )}
          <h2>By cause</h2>
          <table>
            <thead>
              <tr>
                <th scope="col">Cause</th>
                <th scope="col">Rollouts</th>
                <th scope="col">Share</th>
              </tr>
            </thead>
            <tbody>
              {byCount(all).map(([cause, count]) => (
                <tr key={cause}>
                  <td>
                    <Words text={cause} />
                  </td>
                  <td>{number(count)}</td>
                  <td>{percent(count, all.ended)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <h2>By task</h2>
          <p class="quiet">{number(total)} tasks, those with the largest share first.</p>
          <Lines lines={rows} of="Task" />
          {next === null ? null : <a href={withQuery({ after: String(next) })}>Next tasks</a>}
          <h2>By weights</h2>
          {versions.length === 0 ? (
            <p class="quiet">No engine named its weights in a settled round of this run.</p>
          ) : (
            <Lines lines={versions} of="Weights" />
          )}
        </>
      )}
    </Shown>
  )
}

function Lines({ lines, of }: { readonly lines: readonly NullLine[]; readonly of: string }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{of}</th>
          <th scope="col">Ended</th>
          <th scope="col">Without a number</th>
          <th scope="col">Unscorable</th>
          <th scope="col">Causes</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.name}>
            <td>
              <Words text={line.name} />
            </td>
            <td>{number(line.ended)}</td>
            <td>{percent(line.nulls, line.ended)}</td>
            <td>{percent(line.causes['unscorable'] ?? 0, line.ended)}</td>
            <td>
              <Words
                text={byCount(line)
                  .map(([cause, count]) => `${count} ${cause}`)
                  .join(', ')}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function byCount({ causes }: Pick<NullLine, 'causes'>): readonly (readonly [string, number])[] {
  return Object.entries(causes).toSorted(([, a], [, b]) => b - a)
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${number((part / whole) * 100, 1)} %`
}
