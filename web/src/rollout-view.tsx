import { useSignal } from '@preact/signals'
import type { RolloutDetail, RolloutPulse } from '../../src/server/view/contract.ts'
import { Annotate } from './annotate.tsx'
import { LiveState, usePulse } from './live.tsx'
import { Shown, useRead } from './load.tsx'
import { rewardClass } from './rollout-table.tsx'
import { Pictures, Timeline, Training } from './rollout-story.tsx'
import { RolloutTree } from './rollout-tree.tsx'
import { Marked } from './marked.tsx'
import { policyWords } from './policy.ts'
import { place } from './router.ts'
import { Terminal } from './terminal.tsx'
import { duration, moment, number, shortId, visible, Words } from './text.tsx'

const tabs = ['overview', 'tree', 'timeline', 'terminal', 'pictures', 'training'] as const

/** A rollout: how it ended, what it was given for it and why, its sessions, its tree, and what a trainer did with it. */
export function RolloutPage({ id }: { readonly id: string }) {
  const written = useSignal(0)
  const pulse = usePulse<RolloutPulse>(`/view/api/rollouts/${id}/pulse`)
  const mark = pulse.value?.mark ?? ''
  const detail = useRead<RolloutDetail>(`/view/api/rollouts/${id}`, undefined, `${mark} ${written.value}`)
  const tab = tabs.find((name) => name === place.value.query['tab']) ?? 'overview'
  return (
    <Shown of={detail}>
      {(page) => (
        <>
          <p class="crumbs">
            <a href="/">Runs</a> / <a href={`/runs/${page.rollout.runId}`}>{shortId(page.rollout.runId)}</a> /{' '}
            <a href={`/groups/${page.rollout.groupId}`}>group {shortId(page.rollout.groupId)}</a> / {shortId(id)}
          </p>
          <h1>
            <Words text={page.task.name} /> <small>rollout {shortId(id)}</small>
          </h1>
          <LiveState pulse={pulse} going={pulse.value?.isRunning === false ? 'ended' : 'running'} />
          <nav class="tabs" aria-label="Parts of the rollout">
            {tabs.map((name) => (
              <a key={name} href={`/rollouts/${id}?tab=${name}`} aria-current={name === tab ? 'page' : undefined}>
                {name}
              </a>
            ))}
          </nav>
          {tab === 'overview' ? <Overview page={page} /> : null}
          {tab === 'overview' ? <Annotate rolloutId={id} onWritten={() => (written.value += 1)} /> : null}
          {tab === 'tree' ? <RolloutTree id={id} mark={mark} /> : null}
          {tab === 'timeline' ? <Timeline id={id} mark={mark} /> : null}
          {tab === 'terminal' ? <Terminal id={id} mark={mark} /> : null}
          {tab === 'pictures' ? <Pictures id={id} mark={mark} /> : null}
          {tab === 'training' ? <Training id={id} mark={mark} /> : null}
        </>
      )}
    </Shown>
  )
}

function Overview({ page }: { readonly page: RolloutDetail }) {
  const { rollout, task, verdicts, sessions, olderVerdicts } = page
  return (
    <>
      <dl class="facts">
        <dt>task</dt>
        <dd>
          <a href={`/tasks/${task.digest}`}>
            <Words text={task.name} />
          </a>
          , environment {task.environment}
        </dd>
        <dt>harness</dt>
        <dd>
          <Words text={rollout.harness} />, slot {rollout.slot}, attempt {rollout.attempt + 1}
        </dd>
        <dt>end</dt>
        <dd>
          {rollout.end ?? 'running'} <Words text={rollout.endDetail} />
        </dd>
        <dt>time</dt>
        <dd>
          {moment(rollout.startedAt)}, {duration(rollout.startedAt, rollout.endedAt)}
        </dd>
        {rollout.taints.length === 0 ? null : (
          <>
            <dt>tainted</dt>
            <dd>
              <Words text={rollout.taints.join(', ')} />
            </dd>
          </>
        )}
        {Object.entries(rollout.labels).map(([name, value]) => (
          <>
            <dt>
              <Words text={name} />
            </dt>
            <dd>
              <Words text={value} />
            </dd>
          </>
        ))}
      </dl>
      <h2>Verdict</h2>
      {verdicts.length === 0 ? <p class="quiet">There is none.</p> : null}
      {verdicts.map((verdict, at) => (
        <section key={verdict.id} class={at === 0 ? 'verdict' : 'verdict old'}>
          <p>
            <strong class={rewardClass(verdict.reward)}>{number(verdict.reward)}</strong> {verdict.status}
            {at === 0 ? ', in force' : ', replaced'}; verifier {verdict.verifier.id} {verdict.verifier.version}, trust{' '}
            {verdict.trust}, {moment(verdict.at)}
            {verdict.token === undefined ? null : (
              <>
                , by <Words text={verdict.token} />
              </>
            )}
          </p>
          {verdict.reward === null ? (
            <p>
              <Words text={verdict.reason} />
            </p>
          ) : null}
          {Object.entries(verdict.reward === null ? {} : (verdict.byPolicy ?? {})).map(([name, value]) => (
            <p key={name} class="component">
              policy <Words text={name} /> {number(value)}
            </p>
          ))}
          {Object.entries(verdict.components).map(([name, value]) => (
            <p key={name} class="component">
              <Words text={name} /> {number(value)}
            </p>
          ))}
          {verdict.evidence.trim() === '' ? null : (
            <pre>
              <Marked text={verdict.evidence} />
            </pre>
          )}
        </section>
      ))}
      {olderVerdicts === 0 ? null : <p class="quiet">{number(olderVerdicts)} older verdicts are in the store.</p>}
      <h2>Sessions</h2>
      {sessions.length === 0 ? <p class="quiet">It made none: no model call reached Paddock.</p> : null}
      <ul>
        {sessions.map((session) => (
          <li key={session.id}>
            <a href={`/sessions/${session.id}`}>{shortId(session.id)}</a> {session.role}
            {policyWords(session.policy)}, {moment(session.createdAt)}
          </li>
        ))}
      </ul>
      <h2>Instruction</h2>
      <pre>{visible(task.instruction)}</pre>
    </>
  )
}
