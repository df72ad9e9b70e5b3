import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { SearchHit, SearchPart } from '../../src/server/view/contract.ts'
import { read, ViewerError } from './api.ts'
import { Failure, useKeys } from './load.tsx'
import { go, place, withQuery } from './router.ts'
import { number, shortId, visible, Words } from './text.tsx'
import { WindowList } from './window-list.tsx'

/** Hits after which a search waits to be told to go on. */
const atOnce = 500

interface Search {
  readonly hits: readonly SearchHit[]
  readonly rollouts: number
  readonly calls: number
  readonly of: number
  readonly left: number
  /** Where it goes on; null: all was looked at. */
  readonly next: string | null
  readonly state: 'goes on' | 'stopped' | 'done'
  readonly error: ViewerError | null
}

const nothing: Search = { hits: [], rollouts: 0, calls: 0, of: 0, left: 0, next: null, state: 'goes on', error: null }

/** Words in what is recorded: found step by step, newest rollouts first. */
export function SearchView() {
  const { q = '', run = '' } = place.value.query
  const search = useSignal<Search>(nothing)
  const turn = useSignal(0)
  const at = useSignal<number | null>(null)
  useEffect(() => {
    search.value = nothing
    at.value = null
  }, [q, run])
  useEffect(() => {
    if (q.trim().length < 2 || search.value.state !== 'goes on') return
    const abort = new AbortController()
    void goOn(abort.signal)
    return () => abort.abort()
  }, [q, run, turn.value])
  const goOn = async (signal: AbortSignal): Promise<void> => {
    const most = search.value.hits.length + atOnce
    while (!signal.aborted) {
      const before = search.value
      const from = before.next === null ? '' : `&from=${encodeURIComponent(before.next)}`
      const where = run === '' ? '' : `&run=${encodeURIComponent(run)}`
      try {
        const part = await read<SearchPart>(`/view/api/search?q=${encodeURIComponent(q)}${where}${from}`, signal)
        if (signal.aborted) return
        const hits = [...before.hits, ...part.hits]
        search.value = {
          hits,
          rollouts: before.rollouts + part.looked.rollouts,
          calls: before.calls + part.looked.calls,
          of: part.of,
          left: before.left + part.left,
          next: part.next,
          state: part.next === null ? 'done' : hits.length >= most ? 'stopped' : 'goes on',
          error: null,
        }
        if (search.value.state !== 'goes on') return
      } catch (error) {
        if (signal.aborted) return
        const known = error instanceof ViewerError ? error : new ViewerError('INTERNAL', String(error), '')
        search.value = { ...before, state: 'stopped', error: known }
        return
      }
    }
  }
  const stop = (): void => {
    search.value = { ...search.value, state: 'stopped' }
    turn.value += 1
  }
  useKeys((key) => {
    const last = search.value.hits.length - 1
    if (key === 'j') at.value = Math.min(last, (at.value ?? -1) + 1)
    else if (key === 'k') at.value = Math.max(0, (at.value ?? 1) - 1)
    else if (key === 'Enter' && at.value !== null) {
      const hit = search.value.hits[at.value]
      if (hit !== undefined) go(linkOf(hit, q))
    } else if (key === '/') document.querySelector<HTMLInputElement>('#words')?.focus()
    else return false
    return true
  })
  const { hits, state, error } = search.value
  return (
    <>
      <p class="crumbs">
        <a href="/">Runs</a>{' '}
        {run === '' ? null : (
          <>
            / <a href={`/runs/${run}`}>{shortId(run)}</a>{' '}
          </>
        )}
        / search
      </p>
      <h1>Search</h1>
      <form
        class="search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault()
          const words = new FormData(event.currentTarget).get('q')
          go(withQuery({ q: typeof words === 'string' ? words.trim() : '' }))
        }}
      >
        <input
          id="words"
          name="q"
          type="search"
          aria-label="Words to find"
          placeholder="words as they are written"
          maxLength={200}
          key={q}
          defaultValue={q}
        />{' '}
        <button type="submit">Search</button>{' '}
        {run === '' ? (
          <span class="quiet">in all runs</span>
        ) : (
          <span class="quiet">
            in run {shortId(run)} <a href={withQuery({ run: null })}>in all runs</a>
          </span>
        )}
      </form>
      {q.trim().length < 2 ? (
        <p class="quiet">
          Finds words in conversations, tool calls and results, commands of boxes, verdicts, labels, causes of failure
          and ids. At least two characters.
        </p>
      ) : (
        <>
          <p role="status">
            {number(hits.length)} hits; looked at {number(search.value.rollouts)} of {number(search.value.of)} rollouts,{' '}
            {number(search.value.calls)} calls
            {state === 'done' ? '. That is all.' : state === 'stopped' ? ', stopped.' : ' …'}{' '}
            {search.value.left === 0 ? '' : `${number(search.value.left)} more hits in these rollouts are not listed. `}
            {state === 'goes on' ? (
              <button type="button" onClick={stop}>
                Stop
              </button>
            ) : state === 'stopped' ? (
              <button
                type="button"
                onClick={() => {
                  search.value = { ...search.value, state: 'goes on', error: null }
                  turn.value += 1
                }}
              >
                Go on
              </button>
            ) : null}
          </p>
          {error === null ? null : <Failure error={error} />}
          {hits.length === 0 ? null : (
            <WindowList
              count={hits.length}
              rowHeight={52}
              label="Hits"
              at={at.value}
              row={(index) => <Hit hit={hits[index]} q={q} chosen={index === at.value} />}
            />
          )}
        </>
      )}
    </>
  )
}

function Hit({
  hit,
  q,
  chosen,
}: {
  readonly hit: SearchHit | undefined
  readonly q: string
  readonly chosen: boolean
}) {
  if (hit === undefined) return null
  const line = (text: string): string => visible(text.replaceAll(/\s+/g, ' '))
  return (
    <a class={chosen ? 'hit chosen' : 'hit'} href={linkOf(hit, q)} aria-current={chosen ? 'true' : undefined}>
      <span>
        <strong>{hit.where}</strong> <Words text={hit.of} />{' '}
        <span class="quiet">
          {hit.rolloutId === null ? 'no rollout' : `rollout ${shortId(hit.rolloutId)}`} <Words text={hit.task} />
          {hit.call === null ? '' : `, call ${hit.call.seq}`}
          {hit.event === null ? '' : `, event ${hit.event + 1}`}
        </span>
      </span>
      <bdi class="around">
        {line(hit.before)}
        <mark>{line(hit.match)}</mark>
        {line(hit.after)}
      </bdi>
    </a>
  )
}

/** The page at which a hit stands, with its words marked there. */
function linkOf(hit: SearchHit, q: string): string {
  const find = `find=${encodeURIComponent(q)}`
  if (hit.call !== null) return `/sessions/${hit.call.sessionId}?call=${hit.call.seq}&view=text&${find}`
  if (hit.event !== null) return `/rollouts/${hit.rolloutId ?? ''}?tab=timeline&after=${hit.event}&${find}`
  return `/rollouts/${hit.rolloutId ?? ''}?${find}`
}
