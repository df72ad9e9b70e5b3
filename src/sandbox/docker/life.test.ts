import Docker from 'dockerode'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { dockerProvider, type SandboxProvider } from '../index.ts'
import { ownerLabel } from './labels.ts'

const docker = new Docker()

/** Containers of one owner process, running or not. */
async function containersOf(pid: number): Promise<string[]> {
  const list = await docker.listContainers({ all: true, filters: { label: [ownerLabel] } })
  return list.filter((info) => info.Labels[ownerLabel]?.startsWith(`${pid}:`)).map((info) => info.Id)
}

/** Resolves when the daemon has removed all of them; the test's own time limit bounds it. */
async function removalOf(ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await docker
      .getContainer(id)
      .wait({ condition: 'removed' })
      .catch((error: { statusCode?: number }) => {
        if (error.statusCode !== 404) throw error
      })
  }
}

describe.runIf(await requireDocker())('a box and its owner', () => {
  let provider: SandboxProvider
  beforeAll(async () => {
    provider = dockerProvider()
    await using box = await provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
    })
    expect(await box.exec({ command: 'true' })).toMatchObject({ kind: 'exited' })
  })
  afterAll(() => provider.close())

  const startOwner = async (
    ...args: string[]
  ): Promise<{ child: ChildProcess; pid: number; facts: { socket: string } }> => {
    const child = fork(new URL('./owner.fixture.ts', import.meta.url), args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const [facts] = await once(child, 'message')
    return { child, pid: child.pid ?? 0, facts }
  }

  it('leaves nothing after SIGKILL: its reaper takes what cannot end by itself', async () => {
    const { child, pid, facts } = await startOwner()
    const socket = dirname(facts.socket)
    const ids = await containersOf(pid)
    expect(ids).toHaveLength(3)
    expect(existsSync(socket)).toBe(true)
    const gone = new Promise<void>((resolve) => {
      const watcher = watch(dirname(socket), () => {
        if (existsSync(socket)) return
        watcher.close()
        resolve()
      })
    })
    child.kill('SIGKILL')
    await removalOf(ids)
    await gone
    expect(await containersOf(pid)).toEqual([])
  })

  it('leaves no directory after SIGKILL though it never had a box', async () => {
    const { child, facts } = await startOwner('socket-only')
    const socket = dirname(facts.socket)
    const gone = new Promise<void>((resolve) => {
      const watcher = watch(dirname(socket), () => {
        if (existsSync(socket)) return
        watcher.close()
        resolve()
      })
    })
    child.kill('SIGKILL')
    await gone
  })

  // Runs of other test files sweep too, at any moment: what they took of the dead is gone sooner.
  it('leaves no running container after SIGKILL, without anybody sweeping', async () => {
    const { child, pid } = await startOwner('no-reaper')
    const ids = await containersOf(pid)
    // A box, its relay, a frozen box that cannot end by itself.
    expect(ids).toHaveLength(3)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const frozen: string[] = []
    for (const id of ids) if ((await stateOf(id)) === 'paused') frozen.push(id)
    await removalOf(ids.filter((id) => !frozen.includes(id)))
    expect(frozen).toEqual(expect.arrayContaining(await containersOf(pid)))
  })

  it('leaves nothing at all after the next sweep, which explains itself and spares the living', async () => {
    const { child, pid, facts } = await startOwner('no-reaper')
    await using mine = await provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
    })
    child.kill('SIGKILL')
    await once(child, 'exit')
    const plan = await provider.sweep({ dryRun: true, buildCache: true })
    expect(plan.buildCacheBytes).toBeGreaterThanOrEqual(0)
    const socket = facts.socket.replace(/\/sock$/, '')
    if (existsSync(socket)) {
      expect(plan.removed).toContainEqual({ kind: 'directory', id: socket, why: `its owner (process ${pid}) is dead` })
    }
    expect(plan.kept.map((object) => object.id)).toContain(mine.id)
    const ofTheDead = (object: { readonly why: string }): boolean => object.why.includes(`process ${pid})`)
    const done = await provider.sweep()
    expect(done.failed.filter(ofTheDead)).toEqual([])
    expect(existsSync(socket)).toBe(false)
    await removalOf(await containersOf(pid))
    expect(await containersOf(pid)).toEqual([])
    const after = await provider.sweep({ dryRun: true })
    expect([...after.removed, ...after.failed].filter(ofTheDead)).toEqual([])
    expect(await mine.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
  })

  it('dies with its relay, as an infra end', async () => {
    await using socket = await provider.openModelSocket()
    await using box = await provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
      modelPath: { socket },
    })
    const started = Promise.withResolvers<void>()
    const command = box.exec({ command: 'echo on; sleep 100', onStdout: () => started.resolve() })
    await started.promise
    const network = (await docker.getContainer(box.id).inspect()).HostConfig.NetworkMode ?? ''
    await docker.getContainer(network.replace('container:', '')).kill()
    expect(await command).toMatchObject({ kind: 'box_dead', why: { why: 'relay_died' } })
    expect(await box.died).toMatchObject({ why: 'relay_died' })
  })

  it('dies when its container is killed from outside', async () => {
    await using box = await provider.createBox({
      image: await provider.ensureImage({ kind: 'paddock-base' }),
      profile: 'user',
      labels: { role: 'probe' },
    })
    await docker.getContainer(box.id).kill()
    expect((await box.died).why).toBe('exited')
    await expect(box.getFiles('/etc/hostname')).rejects.toMatchObject({ code: 'BOX_DEAD' })
  })

  it('tells its life and its commands to the sink', async () => {
    const seen: string[] = []
    await using other = dockerProvider({
      onEvent: (event, about) =>
        seen.push(
          [event.kind, 'phase' in event ? event.phase : '', 'outcome' in event ? event.outcome : '', about.role].join(
            ' ',
          ),
        ),
    })
    const image = await other.ensureImage({ kind: 'paddock-base' })
    const box = await other.createBox({ image, profile: 'user', labels: { role: 'verifier' } })
    await box.exec({ command: 'exit 3', eventRole: 'verifier' })
    await box.exec({ command: 'true' })
    await box.destroy()
    expect(seen).toEqual(['box created  verifier', 'exec  exited verifier', 'box destroyed  verifier'])
  })
})

async function stateOf(id: string): Promise<string | null> {
  const facts = await docker
    .getContainer(id)
    .inspect()
    .catch(() => null)
  return facts?.State.Status ?? null
}
