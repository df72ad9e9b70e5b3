import type {
  CallDetail,
  RolloutComparison,
  RolloutSide,
  RunComparison,
  TaskPair,
} from '../../src/server/view/contract.ts'
import { Shown, useKeys, useRead } from './load.tsx'
import { MessageText } from './message.tsx'
import { rewardClass } from './rollout-table.tsx'
import { go, place, withQuery } from './router.ts'
import { moment, number, shortId, Words } from './text.tsx'

/** Two rollouts or two runs side by side, by the address. */
export function CompareView({ kind }: { readonly kind: string }) {
  const { a, b } = place.value.query
  if (a === undefined || b === undefined || (kind !== 'rollouts' && kind !== 'runs')) {
    return <p class="failure">An address of two things to compare has their ids: /compare/rollouts?a=…&b=…</p>
  }
  const pair = `a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`
  return kind === 'rollouts' ? <Rollouts pair={pair} /> : <Runs pair={pair} />
}

function Rollouts({ pair }: { readonly pair: string }) {
  const comparison = useRead<RolloutComparison>(`/view/api/compare/rollouts?${pair}`)
  return <Shown of={comparison}>{(value) => <RolloutPair value={value} />}</Shown>
}

function RolloutPair({ value }: { readonly value: RolloutComparison }) {
  const { a, b, pairs, same, position, by } = value
  const last = pairs.length - 1
  const asked = Number(place.value.query['at'] ?? Math.min(same, last) + 1)
  const at = Math.max(0, Math.min(last, Number.isInteger(asked) ? asked - 1 : 0))
  const shown = pairs[at]
  const first = pairs[same]
  useKeys((key) => {
    if (key !== 'j' && key !== 'k') return false
    const next = at + (key === 'j' ? 1 : -1)
    if (next >= 0 && next <= last) go(withQuery({ at: String(next + 1) }), true)
    return true
  })
  return (
    <>
      <h1>
        Two rollouts <small>{value.isTaskSame ? 'of one task' : 'of different tasks'}</small>
      </h1>
      <p>
        {same === pairs.length
          ? `All ${number(same)} calls are the same.`
          : `${same === 0 ? '' : same === 1 ? 'The first call is the same. ' : `The first ${number(same)} calls are the same. `}Call ${number(same + 1)} ${whatDiffers(first)}${position === null ? '' : `, from its ${by === 'tokens' ? 'token' : 'character'} ${number(position)} on`}.`}{' '}
        {by === 'tokens'
          ? 'Prompts and answers are compared by their token ids.'
          : 'Their token ids cannot be compared (two tokenizers, or no ids), so answers alone are compared, by their text.'}
      </p>
      {shown === undefined ? (
        <p class="quiet">Neither of them made a call.</p>
      ) : (
        <>
          <p class="pager">
            Pair {number(at + 1)} of {number(pairs.length)} (j, k){' '}
            {at === 0 ? null : <a href={withQuery({ at: String(at) })}>Before</a>}{' '}
            {at === last ? null : <a href={withQuery({ at: String(at + 2) })}>Next</a>}{' '}
            {first === undefined || at === same ? null : (
              <a href={withQuery({ at: String(same + 1) })}>First difference</a>
            )}
          </p>
          <p class={shown.isPromptSame && shown.isAnswerSame ? 'quiet' : 'warn'}>This pair {whatDiffers(shown)}.</p>
        </>
      )}
      <div class="beside">
        <Side side={a} seq={shown?.a ?? null} />
        <Side side={b} seq={shown?.b ?? null} />
      </div>
    </>
  )
}

function whatDiffers(pair: RolloutComparison['pairs'][number] | undefined): string {
  if (pair === undefined || (pair.isPromptSame && pair.isAnswerSame)) return 'is the same'
  if (pair.a === null || pair.b === null) return 'is there in one of them only'
  if (pair.isAnswerSame) return 'differs in its prompt'
  return pair.isPromptSame ? 'differs in its answer' : 'differs in its prompt and its answer'
}

function Side({ side, seq }: { readonly side: RolloutSide; readonly seq: number | null }) {
  return (
    <section aria-label={`rollout ${shortId(side.id)}`}>
      <h2>
        <a href={`/rollouts/${side.id}`}>{shortId(side.id)}</a> <Words text={side.task} />
      </h2>
      <p>
        <strong class={rewardClass(side.reward)}>{number(side.reward)}</strong> {side.status ?? 'no verdict'},{' '}
        {side.end ?? 'running'}, <Words text={side.harness} />, {number(side.calls)} calls
      </p>
      {side.sessionId === null || seq === null ? (
        <p class="quiet">No call here.</p>
      ) : (
        <SideCall sessionId={side.sessionId} seq={seq} />
      )}
    </section>
  )
}

function SideCall({ sessionId, seq }: { readonly sessionId: string; readonly seq: number }) {
  const call = useRead<CallDetail>(`/view/api/sessions/${sessionId}/calls/${seq}`)
  return (
    <Shown of={call}>
      {(detail) => (
        <>
          <p>
            <a href={`/sessions/${sessionId}?call=${seq}`}>call {seq}</a>, {detail.outcome}, prompt{' '}
            {number(detail.promptTokens)}, sampled {number(detail.sampledTokens)}
          </p>
          {detail.messages.map((message, at) => (
            <MessageText key={at} message={message} />
          ))}
          {detail.choices.map((choice) => (
            <MessageText key={choice.index} message={choice.message} />
          ))}
        </>
      )}
    </Shown>
  )
}

function Runs({ pair }: { readonly pair: string }) {
  const after = place.value.query['after'] ?? '0'
  const comparison = useRead<RunComparison>(
    `/view/api/compare/runs?${pair}&limit=100&after=${encodeURIComponent(after)}`,
  )
  return (
    <Shown of={comparison}>
      {(value) => {
        const { a, b } = value
        return (
          <>
            <h1>
              Two runs <small>paired by task</small>
            </h1>
            <dl class="facts">
              {[a, b].map((side, at) => (
                <>
                  <dt>{at === 0 ? 'a' : 'b'}</dt>
                  <dd>
                    <a href={`/runs/${side.id}`}>
                      <Words text={side.name} />
                    </a>{' '}
                    {shortId(side.id)}, {moment(side.createdAt)}; mean over paired tasks {number(side.pairedMean, 3)},
                    mean sampled tokens {number(side.meanTokens, 0)}
                  </dd>
                </>
              ))}
            </dl>
            <p role="status">
              {number(value.paired)} tasks have a number in both: {number(value.gained)} gained in b,{' '}
              {number(value.lost)} lost; {number(value.onlyA)} are in a only, {number(value.onlyB)} in b only. A task is
              solved where half or more of its effective rollouts passed.
            </p>
            <table>
              <thead>
                <tr>
                  <th scope="col">Task</th>
                  <th scope="col">Flip</th>
                  <th scope="col">a passed</th>
                  <th scope="col">b passed</th>
                  <th scope="col">a mean</th>
                  <th scope="col">b mean</th>
                  <th scope="col">a no number</th>
                  <th scope="col">b no number</th>
                </tr>
              </thead>
              <tbody>
                {value.rows.map((row) => (
                  <tr key={row.digest}>
                    <td>
                      <a href={`/tasks/${row.digest}`}>
                        <Words text={row.name} />
                      </a>
                    </td>
                    <td class={row.flip === 'gained' ? 'good' : row.flip === 'lost' ? 'bad' : undefined}>
                      {row.flip ?? ''}
                    </td>
                    <td>{passed(row.a)}</td>
                    <td>{passed(row.b)}</td>
                    <td>{number(row.a?.mean ?? null)}</td>
                    <td>{number(row.b?.mean ?? null)}</td>
                    <td>{number(row.a?.without ?? null)}</td>
                    <td>{number(row.b?.without ?? null)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {value.next === null ? null : <a href={withQuery({ after: String(value.next) })}>More tasks</a>}
            <h2>Settings that differ</h2>
            {value.settings.length === 0 ? (
              <p class="quiet">None.</p>
            ) : (
              <table>
                <thead>
                  <tr>
                    <th scope="col">Setting</th>
                    <th scope="col">a</th>
                    <th scope="col">b</th>
                  </tr>
                </thead>
                <tbody>
                  {value.settings.map((one) => (
                    <tr key={one.path}>
                      <td>
                        <Words text={one.path} />
                      </td>
                      <td>
                        <Words text={one.a ?? 'not set'} />
                      </td>
                      <td>
                        <Words text={one.b ?? 'not set'} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {value.settingsLeft === 0 ? null : (
              <p class="quiet">{number(value.settingsLeft)} more differences are not shown.</p>
            )}
          </>
        )
      }}
    </Shown>
  )
}

function passed(half: TaskPair['a']): string {
  if (half === null) return 'not there'
  return half.effective === 0 ? '–' : `${number(half.passed)} of ${number(half.effective)}`
}

/** Marks one of a list, then leads from each of the others to the comparison with it. */
export function CompareLink({ kind, id }: { readonly kind: 'rollouts' | 'runs'; readonly id: string }) {
  const marked = place.value.query['mark'] ?? null
  if (marked === null) return <a href={withQuery({ mark: id })}>compare</a>
  if (marked === id) return <a href={withQuery({ mark: null })}>marked</a>
  return (
    <a href={`/compare/${kind}?a=${encodeURIComponent(marked)}&b=${encodeURIComponent(id)}`}>with the marked one</a>
  )
}
