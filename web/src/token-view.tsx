import { useSignal } from '@preact/signals'
import { readTokens, type Tokens } from './api.ts'
import { Shown, useRead } from './load.tsx'
import { number, visible } from './text.tsx'

/** Tokens that are made at once; the reader asks for more. */
const pageTokens = 1000
/** Upper bounds of the probability of a token, from sure to surprising: one class each, by colour and underline. */
const steps = [0.9, 0.5, 0.2, 0.05] as const

/** The sampled tokens of an answer, coloured by how probable each was; masked ones are dim. */
export function TokenView(o: { readonly path: string; readonly choice: number; readonly total: number }) {
  const from = useSignal(0)
  const tokens = useRead<Tokens>(
    `${o.path}?choice=${o.choice}&from=${from.value}&to=${from.value + pageTokens}`,
    readTokens,
  )
  return (
    <Shown of={tokens}>
      {(read) => (
        <>
          <p class="quiet">
            {number(read.head.total)} tokens,{' '}
            {read.head.trained
              ? 'trained'
              : `masked${read.head.maskReason === null ? '' : ` (${read.head.maskReason})`}`}
            , logprobs: {read.head.logprobKind}
          </p>
          <Legend />
          <Strip tokens={read} />
          <p class="pager">
            {from.value === 0 ? null : (
              <button type="button" onClick={() => (from.value = Math.max(0, from.value - pageTokens))}>
                Tokens before
              </button>
            )}{' '}
            {from.value + read.head.n >= read.head.total ? null : (
              <button type="button" onClick={() => (from.value += pageTokens)}>
                Tokens {number(from.value + read.head.n)} and on
              </button>
            )}
          </p>
        </>
      )}
    </Shown>
  )
}

function Legend() {
  const names = [`p ≥ ${steps[0]}`, ...steps.slice(1).map((step) => `≥ ${step}`), `< ${steps.at(-1)}`, 'no logprob']
  return (
    <p class="legend">
      {names.map((name, at) => (
        <span key={name} class={at === names.length - 1 ? 'tok pn' : `tok p${at}`}>
          {name}
        </span>
      ))}
    </p>
  )
}

function Strip({ tokens }: { readonly tokens: Tokens }) {
  const { head, ids, logprobs } = tokens
  return (
    <pre class={head.trained ? 'strip' : 'strip masked'}>
      {Array.from(ids, (id, at) => {
        const logprob = logprobs[at] ?? Number.NaN
        const text = head.texts[id]
        return (
          <span
            key={at}
            class={`tok ${stepOf(logprob)}`}
            title={`${head.from + at}: id ${id}, logprob ${Number.isNaN(logprob) ? 'none' : logprob.toFixed(4)}, p ${Number.isNaN(logprob) ? '–' : Math.exp(logprob).toFixed(3)}`}
          >
            {text === undefined ? `⟨${id}⟩` : visible(text)}
          </span>
        )
      })}
    </pre>
  )
}

function stepOf(logprob: number): string {
  if (Number.isNaN(logprob)) return 'pn'
  const found = steps.findIndex((step) => Math.exp(logprob) >= step)
  return `p${found === -1 ? steps.length : found}`
}
