import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { FacetName, RolloutLine, RolloutPage } from '../../src/server/view/contract.ts'
import { Failure, useKeys } from './load.tsx'
import { usePages } from './pages.ts'
import { go, place, withQuery } from './router.ts'
import { duration, number, shortId, Words } from './text.tsx'
import { WindowList } from './window-list.tsx'

const rowHeight = 30
const facets: readonly FacetName[] = ['status', 'end', 'cause', 'task', 'harness', 'weights']
const columns = ['rollout', 'task', 'slot', 'harness', 'end', 'verdict', 'reward', 'duration'] as const
const sorts: Readonly<Partial<Record<(typeof columns)[number], string>>> = {
  rollout: 'made',
  task: 'task',
  reward: 'reward',
  duration: 'duration',
}

/** A run's rollouts: filtered and sorted by the server, fetched as they come into sight. */
export function RolloutTable({ runId, version }: { readonly runId: string; readonly version: number }) {
  const { query } = place.value
  const filter = filterOf(query)
  const at = useSignal<number | null>(null)
  const shift = useRef(0)
  const seen = useRef({ top: 0, id: '' as string, chosen: '' as string })
  const { first, error, rowAt, need } = usePages<RolloutLine, RolloutPage>(
    `/view/api/runs/${runId}/rollouts${filter === '' ? '' : `?${filter}`}`,
    version,
    {
      ids: (row) => {
        const box = document.querySelector('.window')
        const top = Math.floor((box?.scrollTop ?? 0) / rowHeight)
        const id = row(top)?.id ?? ''
        const chosen = at.value === null ? '' : (row(at.value)?.id ?? '')
        seen.current = { top, id, chosen }
        return [id, chosen].filter((one) => one !== '')
      },
      moved: (places) => {
        const { top, id, chosen } = seen.current
        // At the top, what is new at the top is what the reader waits for.
        if (top > 0) shift.current = (places[id] ?? top) - top
        if (chosen !== '') at.value = places[chosen] ?? null
      },
    },
  )
  useEffect(() => {
    at.value = null
  }, [runId, filter])
  const total = first?.total ?? 0
  useKeys((key) => {
    if (key === 'j') at.value = Math.min(total - 1, (at.value ?? -1) + 1)
    else if (key === 'k') at.value = Math.max(0, (at.value ?? 1) - 1)
    else if (key === 'Enter' && at.value !== null) {
      const row = rowAt(at.value)
      if (row !== undefined) go(`/rollouts/${row.id}`)
    } else if (key === '/') document.querySelector<HTMLInputElement>('#find')?.focus()
    else return false
    return true
  })
  if (error !== null) return <Failure error={error} />
  const page = first
  if (page === null) return <p class="quiet">Reading …</p>
  return (
    <div class="split">
      <aside aria-label="Filters">
        <input
          id="find"
          type="search"
          placeholder="part of an id or task"
          aria-label="Part of an id or task name"
          value={query['q'] ?? ''}
          onChange={(event) => go(withQuery({ q: event.currentTarget.value }), true)}
        />
        {facets.map((name) => (
          <Facet key={name} name={name} counts={page.facets[name]} chosen={query[name] ?? null} />
        ))}
      </aside>
      <section>
        <p class="quiet" role="status">
          {number(page.total)} rollouts
          {page.read.rollouts < page.read.of
            ? `; ${number(page.read.rollouts)} of ${number(page.read.of)} are read so far`
            : ''}
          {query['step'] === undefined ? null : (
            <>
              {' '}
              of step {query['step']} <a href={withQuery({ step: null })}>of any step</a>
            </>
          )}
        </p>
        <WindowList
          count={total}
          rowHeight={rowHeight}
          label="Rollouts"
          head={
            <div class="row head" role="row">
              {columns.map((name) => (
                <SortHead key={name} name={name} sort={query['sort'] ?? 'made'} order={query['order'] ?? 'up'} />
              ))}
            </div>
          }
          at={at.value}
          shift={shift}
          onRange={need}
          row={(index) => <Line line={rowAt(index)} chosen={index === at.value} />}
        />
      </section>
    </div>
  )
}

function filterOf(query: Readonly<Record<string, string>>): string {
  const kept = ['q', 'sort', 'order', 'step', 'group', ...facets].flatMap((name) => {
    const value = query[name]
    return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]
  })
  return kept.join('&')
}

function Facet(o: {
  readonly name: FacetName
  readonly counts: Readonly<Record<string, number>>
  readonly chosen: string | null
}) {
  const values = Object.entries(o.counts)
  if (values.length === 0 || (values.length === 1 && o.chosen === null)) return null
  return (
    <fieldset>
      <legend>{o.name}</legend>
      {values.map(([value, count]) => (
        <a
          key={value}
          class="facet"
          href={withQuery({ [o.name]: o.chosen === value ? null : value })}
          aria-current={o.chosen === value ? 'true' : undefined}
        >
          <Words text={value} /> <span>{number(count)}</span>
        </a>
      ))}
    </fieldset>
  )
}

function SortHead(o: { readonly name: (typeof columns)[number]; readonly sort: string; readonly order: string }) {
  const by = sorts[o.name]
  if (by === undefined) return <span role="columnheader">{o.name}</span>
  const on = by === o.sort
  const href = withQuery({ sort: by, order: on && o.order === 'up' ? 'down' : 'up' })
  return (
    <span role="columnheader" aria-sort={on ? (o.order === 'up' ? 'ascending' : 'descending') : 'none'}>
      <a href={href}>
        {o.name} {on ? (o.order === 'up' ? '▲' : '▼') : ''}
      </a>
    </span>
  )
}

function Line({ line, chosen }: { readonly line: RolloutLine | undefined; readonly chosen: boolean }) {
  if (line === undefined) return <span class="quiet">…</span>
  return (
    <div class={chosen ? 'cells chosen' : 'cells'} aria-current={chosen ? 'true' : undefined}>
      <span role="cell">
        <a href={`/rollouts/${line.id}`}>{shortId(line.id)}</a>
      </span>
      <span role="cell">
        <Words text={line.task} />
      </span>
      <span role="cell">
        {line.slot}
        {line.attempt === 0 ? '' : ` (try ${line.attempt + 1})`}
      </span>
      <span role="cell">
        <Words text={line.harness} />
      </span>
      <span role="cell">
        {line.end ?? 'running'}
        {line.tainted ? ' (tainted)' : ''}
      </span>
      <span role="cell">{line.status ?? '–'}</span>
      <span role="cell" class={rewardClass(line.reward)}>
        {number(line.reward)}
      </span>
      <span role="cell">{duration(line.startedAt, line.endedAt)}</span>
    </div>
  )
}

/** How a reward is coloured; its number always stands beside it. */
export function rewardClass(reward: number | null): string {
  return reward === null ? 'none' : reward >= 1 ? 'good' : reward <= 0 ? 'bad' : 'some'
}
