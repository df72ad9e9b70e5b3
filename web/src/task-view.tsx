import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { PassRate, TaskDetail, TaskPage } from '../../src/server/view/contract.ts'
import { Shown, useRead } from './load.tsx'
import { place, withQuery } from './router.ts'
import { moment, number, shortId, visible, Words } from './text.tsx'

/** The tasks of a run, those that fewest passed first. */
export function RunTasks({ runId, version }: { readonly runId: string; readonly version: number }) {
  const after = place.value.query['after'] ?? '0'
  const tasks = useRead<TaskPage>(
    `/view/api/runs/${runId}/tasks?limit=100&after=${encodeURIComponent(after)}`,
    undefined,
    version,
  )
  return (
    <Shown of={tasks}>
      {({ total, rows, next, harnesses }) => (
        <>
          <p class="quiet">
            {number(total)} tasks, the hardest first. A rollout passed with a reward of 1 or more; what has no number
            that counts stands apart.
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">Task</th>
                <RateHeads />
                {harnesses.length < 2
                  ? null
                  : harnesses.map((name) => (
                      <th scope="col" key={name}>
                        <Words text={name} />
                      </th>
                    ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((task) => (
                <tr key={task.digest}>
                  <td>
                    <a href={`/tasks/${task.digest}`}>
                      <Words text={task.name} />
                    </a>{' '}
                    <a class="quiet" href={`/runs/${runId}?tab=rollouts&task=${encodeURIComponent(task.name)}`}>
                      rollouts
                    </a>
                  </td>
                  <RateCells rate={task} />
                  {harnesses.length < 2
                    ? null
                    : harnesses.map((name) => <td key={name}>{rateText(task.harnesses[name] ?? null)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
          {next === null ? null : <a href={withQuery({ after: String(next) })}>Easier tasks</a>}
        </>
      )}
    </Shown>
  )
}

/** A task over runs, harnesses and weights. */
export function TaskView({ digest }: { readonly digest: string }) {
  const parts = useSignal(0)
  const task = useRead<TaskDetail>(`/view/api/tasks/${digest}`, undefined, parts.value)
  const isWhole = task.value?.read.isWhole ?? true
  // A task of many rollouts is read in parts: each answer asks for the next.
  useEffect(() => {
    if (!isWhole) parts.value += 1
  }, [task.value])
  return (
    <Shown of={task}>
      {(page) => (
        <>
          <p class="crumbs">
            <a href="/">Runs</a> / task {digest.slice(0, 8)}
          </p>
          <h1>
            <Words text={page.name} /> <small>{page.environment}</small>
          </h1>
          <p>
            Passed {rateText(page.all)}; {number(page.all.without)} without a number, {number(page.all.running)}{' '}
            running.
          </p>
          {page.read.isWhole ? null : (
            <p class="quiet" role="status">
              {number(page.read.rollouts)} of {number(page.read.of)} rollouts read so far
            </p>
          )}
          <table>
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Made</th>
                <th scope="col">Harness</th>
                <th scope="col">Weights</th>
                <RateHeads />
              </tr>
            </thead>
            <tbody>
              {page.rows.map((row) => (
                <tr key={`${row.runId} ${row.harness} ${row.weights ?? ''}`}>
                  <td>
                    <a href={rolloutsOf(page.name, row)}>
                      <Words text={row.runName} />
                    </a>{' '}
                    {shortId(row.runId)}
                  </td>
                  <td class="when">{moment(row.runAt)}</td>
                  <td>
                    <Words text={row.harness} />
                  </td>
                  <td>{row.weights === null ? '–' : <Words text={row.weights} />}</td>
                  <RateCells rate={row} />
                </tr>
              ))}
            </tbody>
          </table>
          {page.left === 0 ? null : <p class="quiet">{number(page.left)} more rows, of older runs, are not shown.</p>}
          <h2>Instruction</h2>
          <pre>{visible(page.instruction)}</pre>
        </>
      )}
    </Shown>
  )
}

function RateHeads() {
  return (
    <>
      <th scope="col">Passed</th>
      <th scope="col">Rate</th>
      <th scope="col" title="ended, tainted or lost, without a number that counts">
        No number
      </th>
      <th scope="col">Running</th>
    </>
  )
}

function RateCells({ rate }: { readonly rate: PassRate }) {
  return (
    <>
      <td>{rateText(rate)}</td>
      <td>
        {rate.effective === 0 ? (
          '–'
        ) : (
          <meter
            min={0}
            max={1}
            value={rate.passed / rate.effective}
            aria-label={`${number((100 * rate.passed) / rate.effective, 0)} percent passed`}
          />
        )}
      </td>
      <td>{number(rate.without)}</td>
      <td>{number(rate.running)}</td>
    </>
  )
}

function rateText(rate: PassRate | null): string {
  return rate === null || rate.effective === 0 ? '–' : `${number(rate.passed)} of ${number(rate.effective)}`
}

function rolloutsOf(task: string, row: TaskDetail['rows'][number]): string {
  const query = new URLSearchParams({ tab: 'rollouts', task, harness: row.harness, weights: row.weights ?? 'none' })
  return `/runs/${row.runId}?${query.toString()}`
}
