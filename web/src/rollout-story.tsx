import type { PicturePage, TimelineLine, TimelinePage, TrainingPage } from '../../src/server/view/contract.ts'
import { Shown, useRead } from './load.tsx'
import { Marked } from './marked.tsx'
import { place, withQuery } from './router.ts'
import { moment, number, shortId, span, visible, Words } from './text.tsx'

const pictureLimit = 60

/** What happened in a rollout beside its calls: stages, commands in boxes, results of tools. */
export function Timeline({ id, mark }: { readonly id: string; readonly mark: string }) {
  const after = place.value.query['after'] ?? '0'
  const part = useRead<TimelinePage>(
    `/view/api/rollouts/${id}/timeline?limit=100&after=${encodeURIComponent(after)}`,
    undefined,
    mark,
  )
  return (
    <Shown of={part}>
      {({ total, lines, next, stages }) => (
        <>
          <p class="quiet" role="status">
            {total === 0
              ? 'The log has no events of it.'
              : `${number(total)} events; here ${number((lines[0]?.n ?? 0) + 1)} to ${number((lines.at(-1)?.n ?? 0) + 1)}`}
          </p>
          {stages.length === 0 ? null : (
            <p>
              {stages.map(({ stage, durationMs }, at) => (
                <span key={at} class="stage">
                  {stage} <strong>{span(durationMs)}</strong>
                </span>
              ))}
            </p>
          )}
          <ol class="timeline">
            {lines.map((line, at) => (
              <li key={line.n} class={line.isBad ? 'warn' : undefined}>
                <Line line={line} since={at === 0 ? null : (lines[at - 1]?.at ?? null)} />
              </li>
            ))}
          </ol>
          <p class="pager">
            {after === '0' ? null : <a href={withQuery({ after: null })}>From the beginning</a>}{' '}
            {next === null ? null : <a href={withQuery({ after: String(next) })}>Later events</a>}
          </p>
        </>
      )}
    </Shown>
  )
}

function Line({ line, since }: { readonly line: TimelineLine; readonly since: number | null }) {
  return (
    <>
      <p>
        <span class="quiet">{since === null ? moment(line.at) : `+${span(Math.max(0, line.at - since))}`}</span>{' '}
        <strong>
          <Words text={line.title} />
        </strong>
        {line.durationMs === null ? '' : ` in ${span(line.durationMs)}`}
        {line.call === null ? null : (
          <>
            {' '}
            <a href={`/sessions/${line.call.sessionId}?call=${line.call.seq}`}>call {line.call.seq}</a>
          </>
        )}
      </p>
      {line.texts.map((text) => (
        <div key={text.name}>
          <pre tabIndex={0} aria-label={text.name} class={text.name === 'command' ? 'command' : 'short'}>
            {text.name === 'command' ? '$ ' : text.name === 'stdout' ? '' : `${text.name}: `}
            <Marked text={text.text} />
          </pre>
          {text.cut === 0 ? null : <p class="quiet">{number(text.cut)} more are not shown.</p>}
        </div>
      ))}
    </>
  )
}

/** The pictures that the model was given, in order. */
export function Pictures({ id, mark }: { readonly id: string; readonly mark: string }) {
  const after = Number(place.value.query['after'] ?? 0)
  const pictures = useRead<PicturePage>(
    `/view/api/rollouts/${id}/pictures?limit=${pictureLimit}&after=${encodeURIComponent(after)}`,
    undefined,
    mark,
  )
  return (
    <Shown of={pictures}>
      {({ total, rows, next }) => (
        <>
          <p class="quiet" role="status">
            {total === 0 ? 'Its tools gave the model no pictures.' : `${number(total)} pictures`}
          </p>
          <ol class="film">
            {rows.map((picture, at) => (
              <li key={after + at}>
                <a href={`/view/api/blobs/${picture.sha256}`} target="_blank" rel="noopener">
                  <img
                    src={`/view/api/blobs/${picture.sha256}`}
                    alt={`picture ${after + at + 1} of ${visible(picture.tool)}`}
                    width={picture.width}
                    height={picture.height}
                    loading="lazy"
                  />
                </a>
                <p>
                  {after + at + 1} <Words text={picture.tool} /> {picture.width}×{picture.height}{' '}
                  {picture.call === null ? null : (
                    <a href={`/sessions/${picture.call.sessionId}?call=${picture.call.seq}`}>call {picture.call.seq}</a>
                  )}
                </p>
              </li>
            ))}
          </ol>
          {next === null ? null : <a href={withQuery({ after: String(next) })}>Later pictures</a>}
        </>
      )}
    </Shown>
  )
}

/** What a trainer did with a rollout's rows. */
export function Training({ id, mark }: { readonly id: string; readonly mark: string }) {
  const training = useRead<TrainingPage>(`/view/api/rollouts/${id}/training`, undefined, mark)
  return (
    <Shown of={training}>
      {({ runId, rows, left }) =>
        rows.length === 0 ? (
          <p class="quiet">No trainer was handed a row of it.</p>
        ) : (
          <>
            <table>
              <thead>
                <tr>
                  <th scope="col">Row</th>
                  <th scope="col">Weights</th>
                  <th scope="col" title="announced weights since, when it was handed out">
                    Age
                  </th>
                  <th scope="col">Step</th>
                  <th scope="col">Outcome</th>
                  <th scope="col">Advantage</th>
                  <th scope="col">Reward used</th>
                  <th scope="col">Tokens</th>
                  <th scope="col">Why</th>
                </tr>
              </thead>
              <tbody>
                {rows.flatMap(({ row, labels, age, dispositions }) => {
                  const about = (
                    <>
                      <td>
                        <code title={row}>{shortId(row)}</code>
                      </td>
                      <td>
                        <Words text={labels.join(', ')} />
                      </td>
                      <td>{number(age)}</td>
                    </>
                  )
                  if (dispositions.length === 0) {
                    return [
                      <tr key={row}>
                        {about}
                        <td colSpan={6} class="quiet">
                          handed out; the trainer said nothing of it yet
                        </td>
                      </tr>,
                    ]
                  }
                  return dispositions.map((one, at) => (
                    <tr key={`${row}${at}`} class={one.undone ? 'undone' : undefined}>
                      {about}
                      <td>
                        <a href={`/runs/${runId}?tab=rollouts&step=${one.step}`}>{one.step}</a>
                        {one.use === 0 ? '' : ` (use ${one.use + 1})`}
                      </td>
                      <td>
                        {one.outcome}
                        {one.undone ? ', undone: the trainer went back behind this step' : ''}
                      </td>
                      <td>{number(one.advantage, 3)}</td>
                      <td>{number(one.rewardUsed)}</td>
                      <td>{one.tokens === null ? 'all' : `${one.tokens[0]} to ${one.tokens[1]}`}</td>
                      <td>
                        <Words text={one.reason ?? ''} />
                      </td>
                    </tr>
                  ))
                })}
              </tbody>
            </table>
            {left === 0 ? null : <p class="quiet">{number(left)} more are not shown.</p>}
          </>
        )
      }
    </Shown>
  )
}
