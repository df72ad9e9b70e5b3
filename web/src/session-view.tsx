import { useEffect } from 'preact/hooks'
import type { CallDetail, CallLine, CallsPage, SessionDetail } from '../../src/server/view/contract.ts'
import { Failure, Shown, useKeys, useRead } from './load.tsx'
import { MessageText } from './message.tsx'
import { usePages } from './pages.ts'
import { policyWords } from './policy.ts'
import { go, place, withQuery } from './router.ts'
import { duration, number, shortId, visible, Words } from './text.tsx'
import { TokenView } from './token-view.tsx'
import { WindowList } from './window-list.tsx'

/** A session: its calls, and one of them with messages, tokens and forks. */
export function SessionView({ id }: { readonly id: string }) {
  const session = useRead<SessionDetail>(`/view/api/sessions/${id}`)
  return (
    <Shown of={session}>
      {(detail) => (
        <>
          <p class="crumbs">
            <a href="/">Runs</a> /{' '}
            {detail.rolloutId === null ? (
              'no rollout'
            ) : (
              <a href={`/rollouts/${detail.rolloutId}`}>rollout {shortId(detail.rolloutId)}</a>
            )}{' '}
            / {shortId(id)}
          </p>
          <h1>
            Session{' '}
            <small>
              {shortId(id)}, {detail.role}
              {policyWords(detail.policy)}, {detail.closedAt === null ? 'open' : 'closed'}
            </small>
          </h1>
          {detail.calls === 0 ? <p class="quiet">It has no calls.</p> : <Calls id={id} />}
        </>
      )}
    </Shown>
  )
}

/** A session's calls, fetched as they come into sight, and the one that the address names. */
function Calls({ id }: { readonly id: string }) {
  const asked = place.value.query['call']
  const path = `/view/api/sessions/${id}/calls`
  const found = useRead<CallsPage>(`${path}?limit=1${asked === undefined ? '' : `&at=${encodeURIComponent(asked)}`}`)
  const { first, error, rowAt, need } = usePages<CallLine, CallsPage>(path)
  const at = found.value?.at ?? 0
  const chosen = rowAt(at)
  const step = (by: number): boolean => {
    const next = rowAt(at + by)
    if (next !== undefined) go(withQuery({ call: String(next.seq) }), true)
    return true
  }
  useKeys((key) => {
    if (key === 'j') return step(1)
    if (key === 'k') return step(-1)
    if (key !== 't') return false
    go(withQuery({ view: place.value.query['view'] === 'text' ? null : 'text' }), true)
    return true
  })
  const failure = error ?? found.error
  if (failure !== null) return <Failure error={failure} />
  if (first === null) return <p class="quiet">Reading …</p>
  return (
    <div class="split wide">
      <aside aria-label="Calls">
        <p class="quiet">{number(first.total)} calls</p>
        <WindowList
          count={first.total}
          rowHeight={58}
          label="Calls"
          at={at}
          onRange={need}
          row={(index) => {
            const call = rowAt(index)
            return call === undefined ? null : <CallRow call={call} chosen={index === at} />
          }}
        />
      </aside>
      <section>{chosen === undefined ? null : <Call key={chosen.seq} id={id} seq={chosen.seq} />}</section>
    </div>
  )
}

function CallRow({ call, chosen }: { readonly call: CallLine; readonly chosen: boolean }) {
  const marks = [
    ...call.forks.map((fork) => `fork: ${fork.cause}`),
    ...(call.findings === 0 ? [] : [`${call.findings} findings`]),
    ...(call.delivery === 'superseded' ? ['superseded'] : []),
    ...(call.replayedTokens > 0 ? ['replayed'] : []),
  ]
  return (
    <a
      class={chosen ? 'call chosen' : 'call'}
      href={withQuery({ call: String(call.seq) })}
      aria-current={chosen ? 'true' : undefined}
    >
      <span>
        <strong>{call.seq}</strong> {call.class} · {call.outcome} ·{' '}
        {number(call.replayedTokens > 0 ? call.replayedTokens : call.sampledTokens)} tokens
        {marks.map((mark) => (
          <em key={mark}> {mark}</em>
        ))}
      </span>
      <span class="quiet">
        <Words text={call.preview} />
      </span>
    </a>
  )
}

function Call({ id, seq }: { readonly id: string; readonly seq: number }) {
  const call = useRead<CallDetail>(`/view/api/sessions/${id}/calls/${seq}`)
  useEffect(() => scrollTo(0, 0), [seq])
  return (
    <Shown of={call}>
      {(detail) => (
        <article>
          <dl class="facts">
            <dt>call</dt>
            <dd>
              {detail.seq}, {detail.class}, {detail.dialect}
              {detail.streamed ? ' streamed' : ''}, {detail.strategy}, {duration(detail.startedAt, detail.endedAt)}
            </dd>
            <dt>tokens</dt>
            <dd>
              prompt {number(detail.promptTokens)} ({number(detail.promptNew)} new), sampled{' '}
              {number(detail.sampledTokens)}, trained {number(detail.trained)}
              {detail.replayedTokens > 0 ? `, replayed ${number(detail.replayedTokens)}` : ''}
            </dd>
            <dt>outcome</dt>
            <dd>
              {detail.outcome}, delivery {detail.delivery}
            </dd>
            <dt>weights</dt>
            <dd>
              {detail.weightVersion.before ?? 'unknown'}
              {detail.weightVersion.after === detail.weightVersion.before
                ? ''
                : ` to ${detail.weightVersion.after ?? 'unknown'}`}
            </dd>
            <dt>sampling</dt>
            <dd>
              <code>{samplingText(detail.used)}</code>
            </dd>
          </dl>
          {detail.findingsInFull.map((finding) => (
            <p key={finding} class="warn">
              finding: <Words text={finding} />
            </p>
          ))}
          {detail.forksInFull.map((fork) => (
            <div key={`${fork.cause}${fork.position}`} class="warn">
              <p>
                fork: {fork.cause} at token {number(fork.position)}
                {fork.fromCallSeq === null ? '' : `; should have extended call ${fork.fromCallSeq}`}
              </p>
              <pre>
                - {visible(fork.expected)}
                {'\n'}+ {visible(fork.got)}
              </pre>
            </div>
          ))}
          {detail.error === null ? null : (
            <p class="failure">
              <Words text={detail.error} />
            </p>
          )}
          {detail.messages.map((message, at) => (
            <MessageText key={at} message={message} />
          ))}
          {detail.choices.map((choice) => (
            <section key={choice.index} class="answer">
              <h2>
                Answer{detail.choices.length > 1 ? ` ${choice.index}` : ''}{' '}
                <small>{choice.finishReason ?? 'no finish reason'}</small>
              </h2>
              {choice.sampledTokens === null || place.value.query['view'] === 'text' ? (
                <MessageText message={choice.message} />
              ) : (
                <TokenView
                  path={`/view/api/sessions/${id}/calls/${seq}/tokens`}
                  choice={choice.index}
                  total={choice.sampledTokens}
                />
              )}
              {choice.sampledTokens === null ? (
                <p class="quiet">The engine gave no token ids for this answer.</p>
              ) : (
                <a href={withQuery({ view: place.value.query['view'] === 'text' ? null : 'text' })}>
                  {place.value.query['view'] === 'text' ? 'Show the tokens' : 'Show the text'} (t)
                </a>
              )}
            </section>
          ))}
        </article>
      )}
    </Shown>
  )
}

/** What was asked of the sampler; the rest is left to the engine. */
function samplingText(used: CallDetail['used']): string {
  const set = Object.entries(used).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  return set.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(', ')
}
