import type { taskPageView } from '../../read/index.ts'
import { type Paint, printable } from './colour.ts'
import { table } from './table.ts'
import { shortId } from './units.ts'

type Page = Awaited<ReturnType<typeof taskPageView>>

/** What is remembered of tasks, a line each. What nobody knows is a dash. */
export function taskTable(
  { tasks, next }: Page,
  view: { readonly paint: Paint; readonly columns: number | null },
): string {
  const { paint } = view
  const right = 'right' as const
  // Only columns that tell lines apart.
  const keys = [
    { title: 'run', of: (line: Page['tasks'][number]) => (line.run_id === null ? null : shortId(line.run_id)) },
    { title: 'harness', of: (line: Page['tasks'][number]) => line.harness },
    { title: 'variant', of: (line: Page['tasks'][number]) => line.variant },
    {
      title: 'version',
      of: ({ version }: Page['tasks'][number]) => version && `${version.version} ${version.label ?? ''}`.trim(),
    },
  ].filter(({ of }) => tasks.some((line) => of(line) !== null))
  const text = table(
    [
      { title: 'task' },
      ...keys.map(({ title }) => ({ title })),
      ...['pass rate', 'passed', 'attempts', 'null', 'infra', 'stopped', 'reward', 'tokens', 'turns', 'used'].map(
        (title) => ({ title, align: right }),
      ),
    ],
    tasks.map((line) => [
      paint('name', printable(line.name || line.digest.slice(0, 12))),
      ...keys.map(({ of }) => printable(of(line) ?? '')),
      figure(line.pass_rate, 2),
      String(line.passed),
      String(line.attempts),
      String(line.nulls),
      String(line.infra),
      String(line.stopped),
      figure(line.mean_reward, 3),
      figure(line.mean_tokens, 0),
      figure(line.mean_turns, 1),
      String(line.uses.used),
    ]),
    view,
  )
  return next === null ? text : `${text}\n\n${paint('dim', `There are more: --after ${next}`)}`

  function figure(value: number | null, places: number): string {
    return value === null ? paint('dim', '–') : value.toFixed(places)
  }
}
