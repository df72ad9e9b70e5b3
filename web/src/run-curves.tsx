import type { CurvePage, Means } from '../../src/server/view/contract.ts'
import { Chart } from './chart.tsx'
import { Shown, useRead } from './load.tsx'
import { go } from './router.ts'
import { number, Words } from './text.tsx'

const measures: readonly { readonly name: string; readonly of: (means: Means) => number | null }[] = [
  { name: 'mean reward of effective rollouts', of: ({ meanReward }) => meanReward },
  { name: 'mean sampled tokens', of: ({ meanTokens }) => meanTokens },
  { name: 'part without a number', of: ({ nullShare }) => nullShare },
  { name: 'mean age of weights at hand-out', of: ({ meanAge }) => meanAge },
]

/** A run over time: its trainer's steps, its weights, and its rollouts in order of making. */
export function RunCurves({ runId, version }: { readonly runId: string; readonly version: number }) {
  const page = useRead<CurvePage>(`/view/api/runs/${runId}/curves`, undefined, version)
  const toStep = (step: number): void => go(`/runs/${runId}?tab=rollouts&step=${step}`)
  return (
    <Shown of={page}>
      {({ steps, allSteps, undone, curves, left, weights, parts }) => (
        <>
          <h2>Over training steps</h2>
          {steps.length === 0 ? (
            <p class="quiet">No trainer told of a step of this run.</p>
          ) : (
            <>
              <form
                class="step"
                onSubmit={(event) => {
                  event.preventDefault()
                  const field = event.currentTarget.elements.namedItem('step')
                  if (field instanceof HTMLInputElement && field.value !== '') toStep(Number(field.value))
                }}
              >
                {number(allSteps)} steps, {number(steps[0] ?? 0)} to {number(steps.at(-1) ?? 0)}
                {allSteps > steps.length ? `, of which ${number(steps.length)} are drawn` : ''}
                {undone === 0 ? '' : `; ${number(undone)} that the trainer went back behind are left out`}. Click on
                one, or{' '}
                <label>
                  rollouts of step <input name="step" type="number" min={steps[0]} max={steps.at(-1)} />
                </label>{' '}
                <button type="submit">Show</button>
              </form>
              <div class="charts">
                {curves.map((curve) => (
                  <Chart key={curve.name} name={curve.name} places={steps} values={curve.values} onPick={toStep} />
                ))}
              </div>
              {left === 0 ? null : <p class="quiet">{number(left)} more curves are not shown.</p>}
            </>
          )}
          <h2>By weights</h2>
          {weights.length === 0 ? (
            <p class="quiet">No trainer was handed a rollout of this run, so nobody said which weights are which.</p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Weights</th>
                  <th scope="col">Number</th>
                  <th scope="col">Rollouts</th>
                  <th scope="col">Effective</th>
                  <th scope="col">Mean reward</th>
                  <th scope="col">Mean tokens</th>
                  <th scope="col">Without a number</th>
                  <th scope="col">Mean age</th>
                </tr>
              </thead>
              <tbody>
                {weights.map((one) => (
                  <tr key={one.label}>
                    <td>
                      <a href={`/runs/${runId}?tab=rollouts&weights=${encodeURIComponent(one.label)}`}>
                        <Words text={one.label} />
                      </a>
                    </td>
                    <td>{number(one.ordinal)}</td>
                    <td>{number(one.rollouts)}</td>
                    <td>{number(one.effective)}</td>
                    <td>{number(one.meanReward)}</td>
                    <td>{number(one.meanTokens, 0)}</td>
                    <td>{one.nullShare === null ? '–' : `${number(one.nullShare * 100, 1)} %`}</td>
                    <td>{number(one.meanAge, 1)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          <h2>In order of making</h2>
          <p class="quiet">The run cut into {number(parts.length)} equal parts, from its first rollout to its last.</p>
          <div class="charts">
            {measures.map(({ name, of }) => (
              <Chart key={name} name={name} places={parts.map((_, at) => at + 1)} values={parts.map(of)} />
            ))}
          </div>
        </>
      )}
    </Shown>
  )
}
