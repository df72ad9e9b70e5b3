import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { sized } from './size.ts'

/** Far more boxes are asked for at once than the daemon can start; none may be lost to a time-out. */
const asked = Number(process.env['BOXES'] ?? sized(500, 100))
const idle = Number(process.env['IDLE'] ?? sized(128, 32))

describe.runIf(await requireDocker())('many boxes', () => {
  let provider: SandboxProvider
  beforeAll(async () => {
    provider = dockerProvider()
    await provider.ensureImage({ kind: 'paddock-base' })
  })
  afterAll(() => provider.close())

  const make = async (): Promise<Box> =>
    provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
    })

  it(`asked for at once, ${asked} of them, all start and work`, async () => {
    const began = performance.now()
    const each = async (): Promise<string> => {
      await using box = await make()
      return (await box.exec({ command: ['/bin/true'] })).kind
    }
    const ends = await Promise.all(Array.from({ length: asked }, each))
    expect(ends.filter((kind) => kind === 'exited')).toHaveLength(asked)
    console.log(
      `${asked} boxes started, used and removed: ${(asked / ((performance.now() - began) / 1000)).toFixed(1)}/s`,
    )
  })

  it(`idle, ${idle} of them beside each other, take little memory each and still answer`, async () => {
    const boxes = await Promise.all(Array.from({ length: idle }, make))
    const answers = await Promise.all(boxes.map((box) => box.exec({ command: ['/bin/true'] })))
    expect(answers.filter((answer) => answer.kind === 'exited')).toHaveLength(idle)
    // What the kernel charges the boxes, which others on the machine cannot blur.
    const charged = await Promise.all(boxes.map(memoryOf))
    const own = charged.reduce((sum, bytes) => sum + bytes, 0) / idle
    console.log(`${idle} idle boxes: ${(own / 2 ** 20).toFixed(1)} MiB each`)
    // 128 of them in a tenth of the smallest machine that Paddock is for (16 GiB).
    expect(own).toBeLessThan(12 * 2 ** 20)
    await Promise.all(boxes.map((box) => box.destroy()))
  })
})

/** Bytes charged, as the box itself reads them: not every daemon's statistics are whole. Both layouts of control groups. */
async function memoryOf(box: Box): Promise<number> {
  const told = await box.exec({
    command: ['sh', '-c', 'cd /sys/fs/cgroup && cat memory.current 2>/dev/null || cat memory/memory.usage_in_bytes'],
  })
  return told.kind === 'exited' ? Number.parseInt(Buffer.from(told.stdout).toString(), 10) : Number.NaN
}
