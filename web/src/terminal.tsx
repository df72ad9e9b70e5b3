import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { TerminalPage, TerminalStep } from '../../src/server/view/contract.ts'
import { styled } from './ansi.ts'
import { Failure, useKeys } from './load.tsx'
import { usePages } from './pages.ts'
import { go, place, withQuery } from './router.ts'
import { number, span, visible, Words } from './text.tsx'
import { WindowList } from './window-list.tsx'

/** Commands before the one that is shown, which a terminal would still have in sight. */
const stillSeen = 4
/** What lies between two commands takes no longer than this when it is played. */
const longestPauseMs = 1500
const shortestPauseMs = 150

/** The commands that ran in a rollout's boxes, one after the other, with what they wrote. */
export function Terminal({ id, mark }: { readonly id: string; readonly mark: string }) {
  const { first, error, rowAt, need } = usePages<TerminalStep, TerminalPage>(`/view/api/rollouts/${id}/terminal`, mark)
  const isPlaying = useSignal(false)
  const total = first?.total ?? 0
  const at = Math.min(Math.max(0, total - 1), Math.max(0, Number(place.value.query['step'] ?? 1) - 1))
  const step = rowAt(at)
  const to = (next: number): boolean => {
    if (next >= 0 && next < total) go(withQuery({ step: String(next + 1) }), true)
    return true
  }
  useEffect(() => need(Math.max(0, at - stillSeen), at + 2), [at, total])
  useEffect(() => {
    if (!isPlaying.value || step === undefined) return
    if (at + 1 >= total) {
      isPlaying.value = false
      return
    }
    const following = rowAt(at + 1)
    const gap = following === undefined ? shortestPauseMs : following.at - step.at
    const timer = setTimeout(() => to(at + 1), Math.min(longestPauseMs, Math.max(shortestPauseMs, gap)))
    return () => clearTimeout(timer)
  }, [isPlaying.value, at, step, total])
  useKeys((key) => {
    if (key === 'j' || key === 'l') return to(at + 1)
    if (key === 'k' || key === 'h') return to(at - 1)
    if (key !== 'p') return false
    isPlaying.value = !isPlaying.value
    return true
  })
  if (error !== null) return <Failure error={error} />
  if (first === null) return <p class="quiet">Reading …</p>
  if (total === 0) return <p class="quiet">No command ran in a box of this rollout.</p>
  return (
    <div class="split wide">
      <aside aria-label="Commands">
        <p class="quiet">{number(total)} commands</p>
        <WindowList
          count={total}
          rowHeight={30}
          label="Commands"
          at={at}
          onRange={need}
          row={(index) => <StepRow step={rowAt(index)} chosen={index === at} />}
        />
      </aside>
      <section>
        <p class="player">
          <button type="button" onClick={() => to(at - 1)} disabled={at === 0}>
            Back (h)
          </button>{' '}
          <button type="button" onClick={() => (isPlaying.value = !isPlaying.value)} aria-pressed={isPlaying.value}>
            {isPlaying.value ? 'Pause (p)' : 'Play (p)'}
          </button>{' '}
          <button type="button" onClick={() => to(at + 1)} disabled={at + 1 >= total}>
            Forward (l)
          </button>{' '}
          <input
            type="range"
            min={1}
            max={total}
            value={at + 1}
            aria-label="Command"
            onInput={(event) => to(Number(event.currentTarget.value) - 1)}
          />{' '}
          <span class="quiet">
            {at + 1} of {number(total)}
          </span>
        </p>
        {step === undefined ? (
          <p class="quiet">Reading …</p>
        ) : (
          <p>
            {step.role} command, <span class={step.isBad ? 'bad' : 'good'}>{step.how}</span> in {span(step.durationMs)};{' '}
            <a href={`/rollouts/${id}?tab=timeline&after=${step.event}`}>in the timeline</a>
            {step.call === null ? null : (
              <>
                {' '}
                <a href={`/sessions/${step.call.sessionId}?call=${step.call.seq}`}>call {step.call.seq}</a>
              </>
            )}
          </p>
        )}
        <div class="screen" tabIndex={0} role="group" aria-label="What the terminal showed">
          {Array.from({ length: stillSeen + 1 }, (_, nth) => at - stillSeen + nth).map((index) => {
            const seen = index < 0 ? undefined : rowAt(index)
            return seen === undefined ? null : <Shown key={index} step={seen} isNow={index === at} />
          })}
        </div>
      </section>
    </div>
  )
}

function StepRow({ step, chosen }: { readonly step: TerminalStep | undefined; readonly chosen: boolean }) {
  if (step === undefined) return <span class="quiet">…</span>
  return (
    <a
      class={chosen ? 'step-row chosen' : 'step-row'}
      href={withQuery({ step: String(step.n + 1) })}
      aria-current={chosen ? 'true' : undefined}
    >
      <span class={step.isBad ? 'bad' : 'good'}>{step.isBad ? '✗' : '✓'}</span>{' '}
      <Words text={step.command.slice(0, 80).replaceAll('\n', ' ')} />
    </a>
  )
}

function Shown({ step, isNow }: { readonly step: TerminalStep; readonly isNow: boolean }) {
  return (
    <div class={isNow ? 'ran now' : 'ran'}>
      <pre class="command">$ {visible(step.command)}</pre>
      <Output text={step.stdout} />
      <Output text={step.stderr} />
      {step.cut === 0 ? null : <p class="quiet">{number(step.cut)} more are not shown.</p>}
    </div>
  )
}

function Output({ text }: { readonly text: string }) {
  if (text === '') return null
  return (
    <pre>
      {styled(text).map((run, at) =>
        run.look === '' ? (
          visible(run.text)
        ) : (
          <span key={at} class={run.look.replaceAll(/\w+/g, 'ansi-$&')}>
            {visible(run.text)}
          </span>
        ),
      )}
    </pre>
  )
}
