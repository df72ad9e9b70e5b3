/** Runs the benches of one lane at their smoke size, so that a bench that no longer runs is found early. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Bench, benches } from '../../bench/benches.ts'

const run = fileURLToPath(new URL('../../bench/run.ts', import.meta.url))

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** `node bench/run.ts` with these arguments. */
export async function benchRun(...args: readonly string[]): Promise<Ran> {
  const child = spawn(process.execPath, [run, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: Number(code), out, err }
}

/** One test for each bench of the lane. */
export function smokeBenches(lane: Bench['lane']): void {
  test.each(benches.filter((bench) => bench.lane === lane))(
    'bench $name runs to its table',
    async ({ name, about }) => {
      const { code, out, err } = await benchRun(name, '--smoke')
      expect(code, out + err).toBe(0)
      expect(out).toContain(`== ${about}\n`)
      // A figure that could not be computed is a bench that measures nothing.
      expect(out).not.toMatch(/\b(NaN|undefined|Infinity)\b/)
    },
  )
}
