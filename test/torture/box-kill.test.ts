import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { nastyCommands, requireDocker } from '../../src/testing/sandbox/index.ts'
import { randomFrom } from './random.ts'
import { sized } from './size.ts'

/**
 * Commands that try to outlive their end, over four boxes at once:
 * nothing survives, no box breaks. Told, not judged: how long after the grace the end was reported.
 */
const seed = Number(process.env['SEED'] ?? 20261120)
const cases = sized(1000, 250)
const lanes = 4

/** PID 1 or a keeper, its child; by the name of its program, because one that is ending has no arguments any more. */
const supervisor = /^\s*[01] supervisor\b/

describe.runIf(await requireDocker())(`${cases} commands that try to survive`, () => {
  let provider: SandboxProvider
  const boxes: Box[] = []
  beforeAll(async () => {
    provider = dockerProvider()
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    const make = () => provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, pids: 256 })
    boxes.push(...(await Promise.all(Array.from({ length: lanes }, make))))
  })
  afterAll(() => provider.close())

  it(`leave no process (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const plan = Array.from({ length: cases }, () => ({
      nasty: nastyCommands[Math.floor(random() * nastyCommands.length)],
      timeoutMs: 60 + Math.floor(random() * 140),
      graceMs: Math.floor(random() * 80),
    }))
    const late: number[] = []
    const survived: string[] = []
    const lane = async (box: Box): Promise<void> => {
      for (let next = plan.shift(); next !== undefined; next = plan.shift()) {
        const { nasty, timeoutMs, graceMs } = next
        if (nasty === undefined) throw new Error('no command')
        const result = await box.exec({ command: nasty.command, timeoutMs, graceMs, maxOutputBytes: 4096 })
        expect(result.kind).not.toBe('box_dead')
        if (result.kind === 'timed_out') late.push(result.durationMs - timeoutMs - graceMs)
        const listing = await box.exec({ command: ['ps', '-eo', 'ppid=,comm=,args='] })
        const left = Buffer.from(listing.stdout).toString().trim().split('\n')
        const strange = left.filter((line) => !supervisor.test(line) && !line.includes('ps -eo'))
        if (strange.length > 0) survived.push(`${nasty.name}: ${strange.join(' | ')}`)
      }
    }
    await Promise.all(boxes.map(lane))
    expect(survived).toEqual([])
    const sorted = late.toSorted((a, b) => a - b)
    const at = (part: number): string => `${sorted[Math.floor((sorted.length - 1) * part)]?.toFixed(0)} ms`
    console.log(`end after grace, ${sorted.length} cases: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`)
  })
})
