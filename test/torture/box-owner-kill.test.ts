import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { leftBy } from './left-by.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

/**
 * A process that makes, freezes, snapshots, forks and ends boxes without pause is killed by SIGKILL at seeded moments: each
 * time nothing of it is left in Docker and on disk within a minute, without anybody running a command.
 */
const seed = Number(process.env['SEED'] ?? 20261121)
const kills = Number(process.env['KILLS'] ?? sized(50, 12))

describe.runIf(await requireDocker())('an owner of boxes that is killed', () => {
  let provider: SandboxProvider
  beforeAll(async () => {
    provider = dockerProvider()
    await provider.ensureImage({ kind: 'paddock-base' })
    await (
      await provider.createBox({
        image: await provider.ensureImage({ kind: 'paddock-base' }),
        profile: 'user',
        labels: { role: 'probe' },
      })
    ).destroy()
  })
  afterAll(() => provider.close())

  it(`leaves nothing after a minute, ${kills} times (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const tookMs: number[] = []
    const plans = Array.from({ length: kills }, (_, kill) => {
      const [own, due] = [Math.floor(random() * 2 ** 31), 1 + Math.floor(random() * 12)]
      return { kill, own, due }
    })
    const one = async ({ kill, own, due }: (typeof plans)[number]): Promise<void> => {
      const child = fork(new URL('./box-owner.fixture.ts', import.meta.url), [String(own)], {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      const exited = once(child, 'exit')
      const owner = `${child.pid}:`
      const early = exited.then(([code]) => {
        throw new Error(`the owner ended with ${String(code)} before it was killed`)
      })
      await Promise.race([steps(child, due), early])
      early.catch(() => undefined)
      child.kill('SIGKILL')
      await exited
      const began = performance.now()
      let left = await leftBy(owner)
      while (left.length > 0 && performance.now() - began < 60_000) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        left = await leftBy(owner)
      }
      expect({ kill, left }).toEqual({ kill, left: [] })
      tookMs.push(performance.now() - began)
    }
    // Most of it is waiting for what goes.
    for (let at = 0; at < kills; at += 3) await Promise.all(plans.slice(at, at + 3).map(one))
    const sorted = tookMs.toSorted((a, b) => a - b)
    const at = (part: number): string =>
      `${((sorted[Math.floor((sorted.length - 1) * part)] ?? 0) / 1000).toFixed(1)} s`
    console.log(`nothing left after ${kills} kills: p50 ${at(0.5)}, most ${at(1)}`)
  })
})

/** Waits until the owner has told of so many steps of its work: a moment in the work, not on a clock. */
async function steps(child: ChildProcess, due: number): Promise<void> {
  for (let seen = 0; seen < due; seen++) await once(child, 'message')
}
