import type { RunLine } from '../../src/server/view/contract.ts'
import { CompareLink } from './compare-view.tsx'
import { Shown, useRead } from './load.tsx'
import { moment, shortId, Words } from './text.tsx'

/** The list of runs, newest first. */
export function RunsView() {
  const runs = useRead<{ readonly runs: readonly RunLine[] }>('/view/api/runs')
  return (
    <>
      <h1>Runs</h1>
      <Shown of={runs}>
        {(value) =>
          value.runs.length === 0 ? (
            <p class="quiet">
              Nothing is recorded here yet. Try: <code>paddock run examples/tasks/terminal</code>
            </p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Run</th>
                  <th scope="col">Id</th>
                  <th scope="col">Made</th>
                  <th scope="col">Compare</th>
                </tr>
              </thead>
              <tbody>
                {value.runs.map((run) => (
                  <tr key={run.id}>
                    <td>
                      <a href={`/runs/${run.id}`}>
                        <Words text={run.name} />
                      </a>
                    </td>
                    <td>{shortId(run.id)}</td>
                    <td class="when">{moment(run.createdAt)}</td>
                    <td>
                      <CompareLink kind="runs" id={run.id} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Shown>
    </>
  )
}
