/**
 * 400 rules at once on busy processors: how many values are right, and how long the loop that serves model calls ever waited.
 *
 *   node bench/rules.ts [--busy 2]     busy: threads that do nothing but count meanwhile
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { jsonSchema, math, regex, type Rule } from '../src/reward/index.ts'

interface Asked {
  readonly rule: Rule
  readonly answer: string
  /** Null: its deadline passes. */
  readonly value: number | null
}

const terms = Array.from({ length: 120 }, (_, i) => `x^{${i}}`)
const whole = `(${terms.join('+')})`

/** Every fourth a long expression; two patterns that never end. */
function asked(i: number): Asked {
  if (i % 200 === 50) return { rule: regex(/^(a+)+$/), answer: `${'a'.repeat(60)}!`, value: null }
  if (i % 4 === 0) return { rule: math(whole), answer: `(${terms.toReversed().join('+')})`, value: 1 }
  if (i % 4 === 1)
    return { rule: jsonSchema({ items: { multipleOf: 3 } }), answer: JSON.stringify([3, 6, i * 3]), value: 1 }
  return { rule: math(`\\frac{${i}}{7}`), answer: i % 4 === 2 ? `${2 * i}/14` : `${i}/8`, value: i % 4 === 2 ? 1 : 0 }
}

/** Longest waits of the loop while something runs, in ms. */
async function watched<T>(
  run: () => Promise<T>,
): Promise<{ readonly value: T; readonly longest: number; readonly p99: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const value = await run()
  delay.disable()
  return { value, longest: delay.max / 1e6, p99: delay.percentile(99) / 1e6 }
}

const { values } = parseArgs({ options: { busy: { type: 'string', default: '2' } } })
const busy = Array.from({ length: Number(values.busy) }, () => new Worker('for (;;) {}', { eval: true }))
const idle = await watched(() => new Promise((resolve) => void setTimeout(resolve, 3_000)))
// Rules are made once, with their environment; the first schema loads its compiler.
const all = Array.from({ length: 400 }, (_, i) => asked(i))
const started = performance.now()
const { value, longest, p99 } = await watched(async () => {
  return Promise.all(
    all.map(async ({ rule, answer, value: wanted }) => {
      const found = await rule(answer).then(
        (result) => result.value,
        () => null,
      )
      return found === wanted
    }),
  )
})
const seconds = ((performance.now() - started) / 1000).toFixed(1)
const text = (ms: number) => `${ms.toFixed(1)} ms`
console.log(`${value.filter(Boolean).length} of ${value.length} as they should be, in ${seconds} s`)
console.log(`longest wait of the loop: ${text(longest)}, p99 ${text(p99)}`)
console.log(`the same without rules:   ${text(idle.longest)}, p99 ${text(idle.p99)}`)
await Promise.all(busy.map((worker) => worker.terminate()))
