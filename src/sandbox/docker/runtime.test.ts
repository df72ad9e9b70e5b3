import Docker from 'dockerode'
import { describe, expect, it } from 'vitest'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { dockerProvider } from '../index.ts'

const spec = { image: 'any:1', profile: 'user', labels: { role: 'probe' } } as const

describe.runIf(await requireDocker())('the container runtime of boxes', () => {
  it('is the one that was named', async () => {
    await using provider = dockerProvider({ runtime: 'runc', warmBoxes: 0 })
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    await using box = await provider.createBox({ ...spec, image })
    const facts = await new Docker().getContainer(box.id).inspect()
    expect(facts.HostConfig).toMatchObject({ Runtime: 'runc' })
    // Another one may leave to the daemon what runc does for a box without a network of its own.
    expect(facts.Config).not.toMatchObject({ NetworkDisabled: true })
  })

  it('is refused by name where the daemon lacks it, by a probe too', async () => {
    await using provider = dockerProvider({ runtime: 'paddock-none', reaper: false, warmBoxes: 0 })
    const what = expect.stringMatching(/no runtime paddock-none; it has .*runc/)
    await expect(provider.createBox(spec)).rejects.toMatchObject({ code: 'SANDBOX_CAPABILITY', message: what })
    const { problems } = await provider.probe()
    expect(problems[0]).toMatchObject({ code: 'runtime_unknown', weight: 'fatal', what })
  })
})
