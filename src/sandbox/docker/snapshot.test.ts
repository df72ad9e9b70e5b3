import Docker from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EventBody, newId } from '../../core/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import {
  type Box,
  dockerInspector,
  dockerProvider,
  type ImageRef,
  type SandboxProvider,
  type Snapshot,
} from '../index.ts'

describe.runIf(await requireDocker())('a snapshot of a box', () => {
  let provider: SandboxProvider
  let base: ImageRef
  const told: EventBody[] = []
  const boxOf = (image: ImageRef | string): Promise<Box> =>
    provider.createBox({ image, profile: 'user', labels: { role: 'agent' } })
  const sh = async (box: Box, command: string): Promise<string> =>
    Buffer.from((await box.exec({ command })).stdout).toString()

  beforeAll(async () => {
    provider = dockerProvider({ onEvent: (event) => told.push(event) })
    base = await provider.ensureImage({ kind: 'paddock-base' })
  })
  afterAll(() => provider.close())

  it('starts forks that go on from its files and not from each other', async () => {
    await using box = await boxOf(base)
    await sh(box, 'mkdir -m 700 made && echo one > made/file && rm -f /workspace/.x && sleep 1000 & sleep 0.05')
    await sh(box, 'head -c 100000000 /dev/urandom > big; sha256sum big > sum')
    const running = box.exec({ command: 'sleep 0.6; echo ended' })
    await using snapshot = await box.snapshot()
    // The box went on.
    expect(await running).toMatchObject({ kind: 'exited', code: 0 })
    await sh(box, 'echo later > made/file')
    const forks = await Promise.all(Array.from({ length: 4 }, () => boxOf(snapshot.image)))
    for (const [i, fork] of forks.entries()) await sh(fork, `echo fork ${i} >> made/file`)
    const contents = await Promise.all(
      forks.map((fork) => sh(fork, 'cat made/file; sha256sum -c sum; stat -c "%a %U" made')),
    )
    expect(contents).toEqual(forks.map((_, i) => `one\nfork ${i}\nbig: OK\n700 agent\n`))
    expect(await sh(box, 'cat made/file')).toBe('later\n')
    await Promise.all(forks.map((fork) => fork.destroy()))
    expect(snapshot).toMatchObject({ parent: base.tag, depth: 1 })
    expect(told.filter((event) => event.kind === 'snapshot')).toEqual([
      { kind: 'snapshot', image: snapshot.image.tag, parent: base.tag, callId: null },
    ])
  })

  it('can be taken of a fork of a fork, twenty deep, and all of them go with their provider', async () => {
    const own = dockerProvider()
    let image: ImageRef = await own.ensureImage({ kind: 'paddock-base' })
    const chain: Snapshot[] = []
    for (let turn = 1; turn <= 21; turn++) {
      const box = await own.createBox({ image, profile: 'user', labels: { role: 'agent' } })
      expect(await sh(box, `echo ${turn} >> turns; wc -l < turns`)).toBe(`${turn}\n`)
      const snapshot = await box.snapshot()
      expect(snapshot).toMatchObject({ depth: turn, parent: image.tag })
      chain.push(snapshot)
      image = snapshot.image
      void box.destroy()
    }
    // One in the middle goes early; those above stand.
    await chain[9]?.[Symbol.asyncDispose]()
    const top = await own.createBox({ image, profile: 'user', labels: { role: 'agent' } })
    expect(await sh(top, 'wc -l < turns')).toBe('21\n')
    await own.close()
    const docker = new Docker()
    for (const { image: gone } of chain)
      await expect(docker.getImage(gone.id).inspect()).rejects.toThrow(/no such image/i)
  })

  it('stays when another provider of the same process is closed', async () => {
    const box = await boxOf(base)
    const snapshot = await box.snapshot()
    const other = dockerProvider({ warmBoxes: 0 })
    await other.createBox({ image: base, profile: 'user', labels: { role: 'agent' } })
    await other.close()
    const fork = await boxOf(snapshot.image)
    expect(await fork.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
    await Promise.all([box.destroy(), fork.destroy()])
    await snapshot[Symbol.asyncDispose]()
  })

  it('is refused where it would lose a volume, and of the dead', async () => {
    const image = await provider.ensureImage({
      kind: 'dockerfile',
      name: 'with-volume',
      dockerfile: 'FROM paddock-base\nVOLUME /data\n',
    })
    const box = await boxOf(image)
    await expect(box.snapshot()).rejects.toMatchObject({ code: 'SANDBOX_CAPABILITY' })
    expect(await box.exec({ command: 'true' })).toMatchObject({ kind: 'exited' })
    await box.destroy()
    await expect(box.snapshot()).rejects.toMatchObject({ code: 'BOX_DEAD' })
  })

  it('outlives its provider and every sweep where it is kept, as many as may be, until it is dropped', async () => {
    const [run, rollout, callId] = [newId(), newId(), newId()]
    const inspector = dockerInspector()
    const own = dockerProvider()
    const box = await own.createBox({ image: base, profile: 'user', labels: { role: 'agent', run, rollout } })
    const taken: Snapshot[] = []
    // The fourth would be one too many; the second is too large.
    for (const [size, most] of [
      [10, 2],
      [3_000_000, 2],
      [10, 2],
      [10, 2],
    ] as const) {
      await sh(box, `head -c ${size} /dev/urandom > file${taken.length}; echo ${taken.length} > turn`)
      taken.push(await box.snapshot({ callId, keep: { most, mostBytes: 2 ** 20 * (taken.length === 1 ? 2 : 100) } }))
    }
    expect(taken.map(({ kept }) => kept)).toEqual([true, false, true, false])
    await taken[0]?.[Symbol.asyncDispose]()
    await own.close()
    await provider.sweep()
    const kept = (await inspector.kept()).filter((one) => one.run === run)
    expect(kept).toMatchObject([taken[0], taken[2]].map((one) => ({ image: one?.image.tag, rollout, call: callId })))
    const image = kept[1]?.image ?? ''
    const fork = await boxOf(image)
    expect(await sh(fork, 'cat turn; echo own > own')).toBe('2\n')
    // What stands below counts as what the box has changed.
    expect(await fork.touched()).toEqual(expect.arrayContaining(['/workspace/own', '/workspace/file0']))
    expect((await fork.changes()).map(({ path }) => path)).toEqual(
      expect.arrayContaining(['/workspace/own', '/workspace/file0']),
    )
    expect(await fork.takeLayer()).toBeNull()
    await expect(inspector.drop({ image })).rejects.toMatchObject({ code: 'IMAGE_IN_USE' })
    // What a person keeps of a box that stands on one of the run's is not the run's.
    const sight = (await inspector.list()).find(({ id }) => id === fork.id)
    if (sight === undefined) throw new Error('the box is not listed')
    const { tag } = await inspector.snapshot(sight, `person-${run.slice(-12)}`)
    const [persons] = (await inspector.kept()).filter((one) => one.image === tag)
    expect(persons).toMatchObject({ run: null, rollout: null, call: null, sizeBytes: null })
    await fork.destroy()
    await inspector.drop({ image: tag })
    for (const one of kept.toReversed()) await inspector.drop(one)
    expect((await inspector.kept()).filter((one) => one.run === run)).toEqual([])
    await expect(inspector.drop({ image })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})
