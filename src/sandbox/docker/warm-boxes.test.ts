import Docker from 'dockerode'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EventBody, thisOwner } from '../../core/index.ts'
import { containerEvents, requireDocker } from '../../testing/sandbox/index.ts'
import {
  type Box,
  type BoxLabels,
  type BoxSpec,
  dockerProvider,
  type ImageRef,
  type SandboxProvider,
  type WarmSpec,
} from '../index.ts'
import { ownerLabel } from './labels.ts'

const docker = new Docker()

/** Running boxes (not relays) of this process. */
async function boxes(): Promise<string[]> {
  const filters = { label: [`${ownerLabel}=${thisOwner()}`, 'paddock=box'] }
  return (await docker.listContainers({ filters })).map((info) => info.Id)
}

describe.runIf(await requireDocker())('boxes that are made ahead', () => {
  let provider: SandboxProvider
  let image: ImageRef
  let spec: WarmSpec
  const told: [EventBody, BoxLabels][] = []

  const claim = async (more: Partial<Omit<BoxSpec, 'modelPath'>> = {}): Promise<Box> => {
    const { modelPath: _, ...plain } = { ...spec, ...more }
    return provider.createBox(plain)
  }
  /** Until so many boxes of ours exist; the daemon's own events say when to look again. */
  const exist = async (count: number): Promise<string[]> => {
    await using events = await containerEvents({})
    let now = await boxes()
    while (now.length !== count) {
      await events.next()
      now = await boxes()
    }
    return now
  }

  // A provider per test: what it still makes or ends when the test is over is waited for.
  beforeEach(async () => {
    provider = dockerProvider({ warmBoxes: 2, onEvent: (event, labels) => told.push([event, labels]) })
    image = await provider.ensureImage({ kind: 'paddock-base' })
    spec = { image, profile: 'user', labels: { role: 'agent' } }
    // The in-box programs are there from now on.
    await (await claim()).destroy()
    told.length = 0
  })
  afterEach(() => provider.close())

  it('are handed out once, told only then, with the labels of their rollout', async () => {
    using _first = provider.prefetch(spec)
    using _second = provider.prefetch(spec)
    const [one, two] = (await exist(2)).toSorted()
    expect(told).toEqual([])
    const labels = { role: 'agent' as const, rollout: 'r1' as NonNullable<BoxLabels['rollout']> }
    const claimed = [await claim({ labels }), await claim()]
    expect(claimed.map((box) => box.id).toSorted()).toEqual([one, two])
    expect(told.map(([event, about]) => [event.kind, about])).toEqual([
      ['box', labels],
      ['box', { role: 'agent' }],
    ])
    expect(await claimed[0]?.exec({ command: 'touch /tmp/mine; id -un' })).toMatchObject({
      stdout: Buffer.from('agent\n'),
    })
    expect([one, two]).not.toContain((await claim()).id)
  })

  it('wait paused where they are to, and run when they are claimed', async () => {
    await using parking = dockerProvider({ warmBoxes: 1, parkWarmBoxes: true })
    using _wish = parking.prefetch(spec)
    const [warm = ''] = await exist(1)
    await using events = await containerEvents({ container: [warm], event: ['pause'] })
    if ((await docker.getContainer(warm).inspect()).State.Status !== 'paused') await events.next()
    const { modelPath: _, ...plain } = spec
    await using box = await parking.createBox(plain)
    expect(box.id).toBe(warm)
    expect(await box.exec({ command: 'echo on' })).toMatchObject({ stdout: Buffer.from('on\n') })
    expect((await docker.getContainer(warm).inspect()).State.Status).toBe('running')
  })

  it('are not given to who wants another kind', async () => {
    const wanted = provider.prefetch(spec)
    const [warm] = await exist(1)
    for (const other of [{ profile: 'root' as const }, { env: { A: '1' } }, { memoryMb: 99 }, { workdir: '/tmp' }]) {
      expect((await claim(other)).id).not.toBe(warm)
    }
    wanted[Symbol.dispose]()
  })

  it('are no more than allowed, in the order of the wishes, and end when nobody wants them', async () => {
    const wishes = ['a', 'b', 'c'].map((name) => provider.prefetch({ ...spec, env: { NAME: name } }))
    const warm = await exist(2)
    const first = await claim({ env: { NAME: 'a' } })
    expect(warm).toContain(first.id)
    for (const wish of wishes) wish[Symbol.dispose]()
    expect(await exist(1)).toEqual([first.id])
  })

  it('that died meanwhile are replaced by fresh ones', async () => {
    using _wish = provider.prefetch(spec)
    const [warm = ''] = await exist(1)
    await docker.getContainer(warm).kill()
    const box = await claim()
    expect(box.id).not.toBe(warm)
    expect(await box.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
  })

  it('serve the socket of whoever claims them, and end with it', async () => {
    using _wish = provider.prefetch({ ...spec, modelPath: {} })
    const [warm] = await exist(1)
    await using socket = await provider.openModelSocket()
    const box = await provider.createBox({ ...spec, modelPath: { socket } })
    expect(box.id).toBe(warm)
    const ask = async (): Promise<string> =>
      Buffer.from((await box.exec({ command: `curl -sS ${box.modelUrl}/who` })).stdout).toString()
    expect(await ask()).toBe('no session is bound\n')
    socket.serve({ request: (request, response) => void response.end(`mine ${request.url}`) })
    expect(await ask()).toBe('mine /who')
    socket.unbind()
    expect(await ask()).toBe('no session is bound\n')
  })
})
