import { useSignal } from '@preact/signals'
import type { FamilyLine, FamilyPage, TreeLine, TreePage } from '../../src/server/view/contract.ts'
import { Failure, Shown, useKeys, useRead } from './load.tsx'
import { usePages } from './pages.ts'
import { rewardClass } from './rollout-table.tsx'
import { go } from './router.ts'
import { number, shortId, Words } from './text.tsx'
import { WindowList } from './window-list.tsx'

const rowHeight = 30
const laneWidth = 14
/** Columns of a drawing. */
const mostLanes = 12

/** The calls of a rollout as they hang together, and the family of the rollout. */
export function RolloutTree({ id, mark }: { readonly id: string; readonly mark: string }) {
  const { first, error, rowAt, need } = usePages<TreeLine, TreePage>(`/view/api/rollouts/${id}/tree`, mark)
  const at = useSignal<number | null>(null)
  const total = first?.total ?? 0
  useKeys((key) => {
    if (key === 'j') at.value = Math.min(total - 1, (at.value ?? -1) + 1)
    else if (key === 'k') at.value = Math.max(0, (at.value ?? 1) - 1)
    else if (key === 'Enter' && at.value !== null) {
      const line = rowAt(at.value)
      if (line !== undefined) go(callLink(line.sessionId, line.seq))
    } else return false
    return true
  })
  return (
    <>
      <Family id={id} mark={mark} />
      <h2>Calls</h2>
      {error === null ? null : <Failure error={error} />}
      {first === null ? (
        <p class="quiet">Reading …</p>
      ) : total === 0 ? (
        <p class="quiet">No model call reached Paddock.</p>
      ) : (
        <>
          <p class="quiet">
            {number(total)} calls in order of arrival. A line leads from each answer to what goes on from it. ● all of
            its tokens train, ◐ some, ○ none; each token trains once.
          </p>
          <WindowList
            count={total}
            rowHeight={rowHeight}
            label="Calls of the rollout"
            at={at.value}
            onRange={need}
            row={(index) => <Row line={rowAt(index)} before={rowAt(index - 1)} chosen={index === at.value} />}
          />
        </>
      )}
    </>
  )
}

function Family({ id, mark }: { readonly id: string; readonly mark: string }) {
  const family = useRead<FamilyPage>(`/view/api/rollouts/${id}/family`, undefined, mark)
  return (
    <Shown of={family}>
      {({ lines, left }) =>
        lines.length < 2 ? (
          <p class="quiet">No rollout was forked from it, and it was forked from none.</p>
        ) : (
          <>
            <h2>Family</h2>
            <p class="quiet">
              Rollouts that share their past with this one. The value of a place is the mean reward of those that came
              through it.
            </p>
            <ul class="family">
              {lines.map((line, at) => (
                <li key={at} style={{ paddingLeft: `${line.depth * 1.2}rem` }}>
                  <Kin line={line} here={id} />
                </li>
              ))}
            </ul>
            {left === 0 ? null : <p class="quiet">{number(left)} more lines are not shown.</p>}
          </>
        )
      }
    </Shown>
  )
}

function Kin({ line, here }: { readonly line: FamilyLine; readonly here: string }) {
  if (line.kind === 'place') {
    return (
      <>
        forked at <a href={callLink(line.sessionId, line.seq)}>call {line.call}</a>,{' '}
        {line.value === null ? 'no value' : `value ${number(line.value, 3)}`} of {number(line.count)} rewards
      </>
    )
  }
  return (
    <>
      {line.rolloutId === here ? (
        <strong>{shortId(line.rolloutId)} (this one)</strong>
      ) : (
        <a href={`/rollouts/${line.rolloutId}?tab=tree`}>{shortId(line.rolloutId)}</a>
      )}{' '}
      <span class={rewardClass(line.reward)}>
        {line.reward === null ? 'no reward' : `reward ${number(line.reward)}`}
      </span>
      , {number(line.calls)} calls
      {line.replayedCalls === 0
        ? ''
        : ` (${number(line.replayedCalls)} replayed, trained where they were sampled)`},{' '}
      {number(line.trainedTokens)} of {number(line.sampledTokens)} sampled tokens train
    </>
  )
}

function Row(o: {
  readonly line: TreeLine | undefined
  readonly before: TreeLine | undefined
  readonly chosen: boolean
}) {
  const { line } = o
  if (line === undefined) return <span class="quiet">…</span>
  const isNewSession = o.before !== undefined && o.before.sessionId !== line.sessionId
  const marks = [
    ...line.forks.map(
      ({ cause, fromSeq }) => `fork: ${cause}${fromSeq === null ? '' : `, not on from call ${fromSeq}`}`,
    ),
    ...(line.delivery === 'superseded' ? ['superseded'] : []),
    ...(line.replayedTokens > 0 ? ['replayed'] : []),
  ]
  return (
    <a
      class={`${o.chosen ? 'leaf chosen' : 'leaf'}${isNewSession ? ' other' : ''}`}
      href={callLink(line.sessionId, line.seq)}
      aria-current={o.chosen ? 'true' : undefined}
    >
      <Lanes line={line} />
      <span class="what">
        <strong>{line.seq}</strong> {line.class}
        {line.role === 'agent' ? '' : ` (${line.role})`} · {line.outcome}
      </span>
      <span title={line.maskReason === null ? undefined : `not trained: ${line.maskReason}`}>
        {trainMark(line)} {number(line.trained)}/{number(line.sampledTokens)}
        {line.maskReason === null ? '' : ` ${line.maskReason}`}
      </span>
      <span class="said">
        {marks.map((mark) => (
          <em key={mark}>{mark} </em>
        ))}
        <Words text={line.preview} />
      </span>
    </a>
  )
}

function trainMark({ trained, sampledTokens }: TreeLine): string {
  if (sampledTokens === null || trained === 0) return '○'
  return trained < sampledTokens ? '◐' : '●'
}

/** The piece of the drawing that stands in one row. */
function Lanes({ line }: { readonly line: TreeLine }) {
  const x = (lane: number): number => (lane + 0.5) * laneWidth
  const middle = rowHeight / 2
  return (
    <svg class="lanes" width={mostLanes * laneWidth} height={rowHeight} aria-hidden="true">
      {line.through.map((lane) => (
        <line key={lane} x1={x(lane)} y1={0} x2={x(lane)} y2={rowHeight} />
      ))}
      {line.parent === null ? null : <line x1={x(line.lane)} y1={0} x2={x(line.lane)} y2={middle} />}
      {line.out.map((lane) => (
        <path key={lane} d={`M ${x(line.lane)} ${middle} L ${x(lane)} ${rowHeight}`} />
      ))}
      <circle cx={x(line.lane)} cy={middle} r={4} class={line.forks.length > 0 ? 'forked' : undefined} />
    </svg>
  )
}

function callLink(sessionId: string, seq: number): string {
  return `/sessions/${sessionId}?call=${seq}`
}
