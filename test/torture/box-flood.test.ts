import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const gigabyte = 1_000_000_000
/** A sixteenth of what passes; 0 to 20 are seen. */
const mostMb = 64

describe.runIf(await requireDocker())('a gigabyte of output', () => {
  let provider: SandboxProvider
  beforeAll(() => {
    provider = dockerProvider()
  })
  afterAll(() => provider.close())

  const boxOf = async () =>
    provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
    })

  it.each([
    ['beyond the limit of its command, counted in the box', { maxOutputBytes: 1 << 20 }, 1 << 20],
    ['followed by a listener that keeps nothing', { output: 'told', onStdout: ignore }, 0],
    ['followed by a listener that is slow', { output: 'told', onStdout: beSlow }, 0],
  ] as const)('%s: the memory of the host is bounded', async (_, more, kept) => {
    await using box = await boxOf()
    await box.exec({ command: 'head -c 50000000 /dev/zero', maxOutputBytes: 1 })
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    let most = before
    const look = (): void => void (most = Math.max(most, process.memoryUsage().rss))
    const watch = setInterval(look, 20)
    const result = await box.exec({
      command: ['head', '-c', String(gigabyte), '/dev/zero'],
      timeoutMs: 600_000,
      ...more,
    })
    clearInterval(watch)
    look()
    expect(result).toMatchObject({ kind: 'exited', code: 0 })
    expect(result.stdout.byteLength).toBe(kept)
    const grew = (most - before) / 1e6
    console.log(
      `1 GB of output: host memory grew by ${grew.toFixed(0)} MB, ${(1000 / (result.durationMs / 1000)).toFixed(0)} MB/s`,
    )
    expect(grew).toBeLessThan(mostMb)
  })

  it('is held up by a reader that does not read, and goes on when it does', async () => {
    await using box = await boxOf()
    const piece = Buffer.alloc(1 << 20, 'x')
    let taken = 0
    const input = (async function* () {
      for (; taken < 1000; taken += 1) yield piece
    })()
    let takenUnread: number | null = null
    const result = await box.exec({
      command: 'sleep 1; echo reads; sha256sum | head -c 64',
      stdin: input,
      onStdout: () => void (takenUnread ??= taken),
      timeoutMs: 600_000,
    })
    expect(result).toMatchObject({ kind: 'exited', code: 0 })
    // What is under way is bounded by acknowledgements: so many pieces of a megabyte were asked for, and no more.
    expect(takenUnread).toBeLessThan(mostMb)
    expect(taken).toBe(1000)
  })
})

/** Holds the event loop up for 0.1 ms, as a listener does that computes: what comes takes half of that. */
function beSlow(): void {
  const until = performance.now() + 0.1
  while (performance.now() < until);
}

function ignore(): void {}
