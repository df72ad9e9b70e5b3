import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Box, BoxSpec, ImageRef, SandboxProvider, ModelSocket } from '../../sandbox/index.ts'
import { capabilitiesContract } from './capabilities.ts'
import { commandsContract } from './commands.ts'
import { filesContract } from './files.ts'
import { isolationContract } from './isolation.ts'
import { modelPathContract } from './model-path.ts'
import type { SharedBoxParts } from './parts.ts'

/** What the suite needs to know of a provider. */
export interface SandboxContractOptions {
  /** A fresh provider; the suite closes it. */
  make(): Promise<SandboxProvider>
  /** How many of the commands that try to survive are run. Default: all. */
  readonly nasty?: number
}

/** Everything that a sandbox provider promises, against the real thing. The image `paddock-base` must be to be had. */
export function sandboxContract(options: SandboxContractOptions): void {
  let provider: SandboxProvider
  let image: ImageRef
  let box: Box
  let socket: ModelSocket

  const createBox = (spec: Partial<BoxSpec> = {}): Promise<Box> =>
    provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, ...spec })

  beforeAll(async () => {
    provider = await options.make()
    image = await provider.ensureImage({ kind: 'paddock-base' })
    socket = await provider.openModelSocket()
    box = await createBox({ modelPath: { socket }, pids: 256 })
  })

  afterAll(async () => {
    await provider?.close()
  })

  const parts: SharedBoxParts = {
    provider: () => provider,
    image: () => image,
    createBox,
    box: () => box,
    socket: () => socket,
    sh: async (command, more = {}) => {
      const result = await box.exec({ command, timeoutMs: 60_000, ...more })
      expect(result.kind).not.toBe('box_dead')
      return result
    },
  }

  commandsContract(parts, options)
  filesContract(parts)
  modelPathContract(parts)
  isolationContract(parts)
  capabilitiesContract(parts)

  describe('the life of a box', () => {
    it('ends at its own deadline', async () => {
      const brief = await createBox({ deadlineMs: 300 })
      expect(await brief.exec({ command: 'sleep 100' })).toMatchObject({ kind: 'box_dead', why: { why: 'deadline' } })
      expect((await brief.died).why).toBe('deadline')
    })

    it('ends though it is frozen', async () => {
      const frozen = await createBox()
      await frozen.freeze()
      await frozen.destroy()
      expect((await frozen.died).why).toBe('destroyed')
    })

    it('makes the directory that it works in', async () => {
      const made = await createBox({ workdir: '/srv/not/there' })
      expect(await made.exec({ command: 'touch mine; pwd' })).toMatchObject({ stdout: Buffer.from('/srv/not/there\n') })
      expect((await made.getFiles('/srv/not/there/mine')).found).toBe(true)
      await made.destroy()
    })

    it('refuses what it cannot do', async () => {
      // The type allows only what exists; a configuration file does not know types.
      const open_ = { egress: 'open' } as unknown as Partial<BoxSpec>
      await expect(createBox(open_)).rejects.toMatchObject({ code: 'SANDBOX_CAPABILITY' })
      await expect(createBox({ image: 'paddock-no-such-image:1' })).rejects.toMatchObject({ family: 'infra' })
    })

    it('does not begin when the caller has given up', async () => {
      await expect(
        provider.createBox({ image, profile: 'user', labels: { role: 'probe' } }, { signal: AbortSignal.abort() }),
      ).rejects.toThrow(/abort/i)
    })
  })
}
