import Docker from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isPaddockError } from '../../src/core/index.ts'
import { type Box, type BoxSpec, dockerProvider, type ExecSpec, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

/**
 * Twenty-four faults, each of which must be told as what it is: what the command did, what the box did, what our
 * infrastructure did, what the caller asked for.
 */
interface Fault {
  readonly what: string
  readonly is: string
  readonly command: Partial<ExecSpec> & Pick<ExecSpec, 'command'>
  readonly box?: Partial<BoxSpec>
  /** What happens to the box once the command has said `on`. */
  readonly once?: (box: Box, abort: AbortController) => Promise<unknown>
}

const docker = new Docker()
const eat = "python3 -c 'x = bytearray(300 << 20)'"
const lasts = 'echo on; sleep 100'

const faults: readonly Fault[] = [
  { what: 'success', is: 'exited 0', command: { command: 'true' } },
  { what: 'failure', is: 'exited 3', command: { command: 'exit 3' } },
  { what: 'the code of a time-out', is: 'exited 124', command: { command: 'exit 124' } },
  { what: 'the code of a kill', is: 'exited 137', command: { command: 'exit 137' } },
  { what: 'no such program', is: 'exited 127', command: { command: ['/no/such'] } },
  { what: 'no program at all', is: 'exited 126', command: { command: ['/etc/passwd'] } },
  { what: 'no such directory', is: 'exited 126', command: { command: 'true', cwd: '/no/such' } },
  { what: 'a crash', is: 'signaled SIGSEGV', command: { command: 'kill -SEGV $$' } },
  { what: 'a kill by itself', is: 'signaled SIGKILL', command: { command: 'kill -KILL $$' } },
  { what: 'time', is: 'timed_out', command: { command: 'sleep 100', timeoutMs: 80 } },
  {
    what: 'time, ignoring TERM',
    is: 'timed_out',
    command: { command: 'trap "" TERM; while :; do sleep 0.01; done', timeoutMs: 80, graceMs: 50 },
  },
  {
    what: 'time, ending well on TERM',
    is: 'timed_out',
    command: { command: 'trap "exit 0" TERM; while :; do sleep 0.01; done', timeoutMs: 80 },
  },
  { what: 'memory', is: 'oom', command: { command: eat }, box: { memoryMb: 64 } },
  { what: 'memory below a shell', is: 'oom', command: { command: `${eat}; exit $?` }, box: { memoryMb: 64 } },
  {
    what: 'memory that the command survived',
    is: 'exited 0 (1 killed for memory)',
    command: { command: `${eat}; true` },
    box: { memoryMb: 64 },
  },
  {
    what: 'the size of a file',
    is: 'signaled SIGXFSZ',
    command: { command: 'exec head -c 9000000 /dev/zero > big' },
    box: { fileMb: 1 },
  },
  {
    what: 'processes',
    is: 'exited 7',
    command: {
      command: [
        'python3',
        '-c',
        'import os, time\ntry:\n  for i in range(99):\n    if os.fork() == 0: time.sleep(9); os._exit(0)\nexcept OSError: os._exit(7)',
      ],
    },
    box: { pids: 32 },
  },
  { what: 'output', is: 'exited 0 (cut)', command: { command: 'head -c 99999 /dev/zero', maxOutputBytes: 9 } },
  {
    what: 'the end of the box by us',
    is: 'box_dead destroyed',
    command: { command: lasts },
    once: (box) => box.destroy(),
  },
  {
    what: 'the end of the box by somebody else',
    is: 'box_dead exited',
    command: { command: lasts },
    once: (box) => docker.getContainer(box.id).kill(),
  },
  { what: 'the age of the box', is: 'box_dead deadline', command: { command: lasts }, box: { deadlineMs: 1500 } },
  {
    what: 'a caller who gives up',
    is: 'rejected: enough',
    command: { command: lasts },
    once: async (_box, abort) => abort.abort(new Error('enough')),
  },
  { what: 'a malformed command', is: 'rejected: BOX_COMMAND_REFUSED', command: { command: [] } },
  {
    what: 'a user that the box cannot become',
    is: 'rejected: BOX_COMMAND_REFUSED',
    command: { command: 'id', user: 'root' },
  },
]

describe.runIf(await requireDocker())('what ended a command is told as what it is', () => {
  let provider: SandboxProvider
  beforeAll(async () => {
    provider = dockerProvider()
    await provider.ensureImage({ kind: 'paddock-base' })
  })
  afterAll(() => provider.close())

  it.concurrent.each(faults)('$what: $is', async (fault) => {
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    const spec = { image, profile: 'user' as const, labels: { role: 'probe' as const }, ...fault.box }
    await using box = await provider.createBox(spec)
    expect(await told(box, fault)).toBe(fault.is)
  })

  it('faults of the place itself are of family infra', async () => {
    const labels = { role: 'probe' as const }
    await using nowhere = dockerProvider({ socketPath: '/nowhere/docker.sock', reaper: false })
    const noDaemon = nowhere.createBox({ image: 'x', profile: 'user', labels })
    await expect(noDaemon).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE', family: 'infra' })
    const noImage = provider.createBox({ image: 'paddock-no-such-image:1', profile: 'user', labels })
    await expect(noImage).rejects.toMatchObject({ code: 'IMAGE_MISSING', family: 'infra' })
  })
})

async function told(box: Box, { command, once }: Fault): Promise<string> {
  const abort = new AbortController()
  const onStdout = (chunk: Uint8Array): void => {
    if (Buffer.from(chunk).toString().startsWith('on')) void once?.(box, abort)
  }
  try {
    const result = await box.exec({ timeoutMs: 300_000, ...command, onStdout }, { signal: abort.signal })
    const cut = result.truncated.stdout > 0 ? ' (cut)' : ''
    const killed = result.oomKills > 0 && result.kind !== 'oom' ? ` (${result.oomKills} killed for memory)` : ''
    if (result.kind === 'exited') return `exited ${result.code}${cut}${killed}`
    if (result.kind === 'signaled') return `signaled ${result.signal}`
    return result.kind === 'box_dead' ? `box_dead ${result.why.why}` : result.kind
  } catch (error) {
    return `rejected: ${isPaddockError(error) ? error.code : error instanceof Error ? error.message : String(error)}`
  }
}
