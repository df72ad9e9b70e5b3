import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { terminal } from '../../src/envs/index.ts'
import { cline, recordBoxEvents, referenceAgent, type RunSummary } from '../../src/rollout/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { openOwnWorld, terminalTask, type World } from '../rollout/world.ts'
import { type SecondDocker, secondDocker } from './second-docker.ts'

describe.runIf(await requireDocker())('a daemon that sees none of our files', () => {
  const hasBridge = (): boolean => existsSync('/sys/class/net/docker0')
  const hadBridge = hasBridge()
  let daemon: SecondDocker
  beforeAll(async () => {
    daemon = await secondDocker()
    await daemon.bringBase()
  })
  afterAll(async () => {
    await daemon?.[Symbol.asyncDispose]()
    // The daemon of this machine keeps its network.
    expect(hasBridge()).toBe(hadBridge)
  })

  const spec = { profile: 'user', labels: { role: 'probe' } } as const
  const noContainers = () =>
    expect.poll(async () => (await daemon.client.listContainers({ all: true })).map(({ Names }) => Names)).toEqual([])

  describe('rollouts', () => {
    let world: World
    let task: Task
    beforeAll(async () => {
      world = await openOwnWorld()
      task = await terminalTask('log-forensics')
    })
    afterAll(() => world[Symbol.asyncDispose]())

    /** What is recorded of a rollout, without what differs from one to the next. */
    async function record(summary: RunSummary): Promise<object> {
      const [rollout] = summary.rollouts
      if (rollout === undefined) throw new Error('no rollout')
      const { rolloutId, end, verdict, taints } = rollout
      const [session] = await world.store.recorder.sessions({ rolloutId })
      const { calls } = await world.store.recorder.session(session?.id ?? '')
      const events = await world.store.recorder.events({ rolloutId })
      return {
        end,
        taints,
        verdict: { status: verdict?.status, reward: verdict?.reward, trust: verdict?.trust },
        calls: calls.map(({ intent, commit }) => [intent.dialect, commit?.outcome.kind, commit?.forks.length]),
        events: events.map((event) => [
          event.kind,
          ...('stage' in event ? [event.stage] : []),
          ...('phase' in event ? [event.phase] : []),
          ...('role' in event ? [event.role] : []),
          ...('exitCode' in event ? [event.exitCode] : []),
        ]),
      }
    }

    test('of an unmodified CLI in a box are recorded as those on this machine, and verified in another box', async () => {
      await world.script(task, (await terminal.scripts.oracle(task)).script.steps)
      const here = await record(await world.run({ tasks: [task], harness: cline() }))
      const onEvent = recordBoxEvents(world.store.recorder)
      await using sandbox = dockerProvider({ host: daemon.host, tls: daemon.tls, onEvent })
      const there = await record(await world.run({ tasks: [task], harness: cline(), sandbox }))
      expect(there).toEqual(here)
      expect(there).toMatchObject({ end: 'completed', verdict: { reward: 1, trust: 'separate' }, taints: [] })
      await noContainers()
    })

    test('whose connection is cut are infra without any number, and nothing is left', async () => {
      await using between = await passage(daemon.port)
      const host = `tcp://127.0.0.1:${between.port}`
      const record = recordBoxEvents(world.store.recorder)
      await using sandbox = dockerProvider({
        host,
        tls: daemon.tls,
        onEvent: (event, about) => {
          record(event, about)
          if (event.kind === 'exec' && event.role === 'tool') between.cut()
        },
      })
      await world.script(task, [{ shell: 'echo begun' }, { shell: 'sleep 600' }, { say: 'never said' }])
      const summary = await world.run({
        tasks: [task],
        harness: referenceAgent(),
        sandbox,
        infraRetries: 0,
      })
      expect(summary.rollouts).toMatchObject([{ end: 'infra', verdict: null }])
      expect(summary.groups).toMatchObject([{ rewards: [], mean: null }])
      // A box that was being made when its answer was lost goes with the provider, all others with their connection.
      await sandbox.close()
      await noContainers()
    })
  })

  test('is found out behind a socket of this machine too, as `ssh -L` makes one', async () => {
    const directory = await mkdtemp('/tmp/paddock-tunnel-')
    const socketPath = join(directory, 'docker.sock')
    const { ca, cert, key } = daemon.tls
    const pem = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) }
    await using _tunnel = await between(socketPath, () => connectTls({ host: '127.0.0.1', port: daemon.port, ...pem }))
    await using sandbox = dockerProvider({ socketPath, warmBoxes: 0 })
    expect(await sandbox.probe()).toMatchObject({ modelPath: 'stream', diskFreeBytes: null, problems: [] })
    await using socket = await sandbox.openModelSocket()
    socket.serve({ request: (request, response) => void request.resume().on('end', () => response.end('reached')) })
    const image = await sandbox.ensureImage({ kind: 'paddock-base' })
    await using box = await sandbox.createBox({ ...spec, image, modelPath: { socket } })
    expect(await box.exec({ command: `curl -sS ${box.modelUrl}/` })).toMatchObject({ stdout: Buffer.from('reached') })
    await rm(directory, { recursive: true })
  })

  test('is reached as the docker CLI would, and not with the certificates of another', async () => {
    vi.stubEnv('DOCKER_HOST', daemon.host)
    vi.stubEnv('DOCKER_TLS_VERIFY', '1')
    vi.stubEnv('DOCKER_CERT_PATH', daemon.certificates)
    expect(await dockerProvider().probe()).toMatchObject({ reachable: true, modelPath: 'stream' })
    vi.stubEnv('DOCKER_TLS_VERIFY', '')
    const fix = expect.stringContaining('sandbox.tls')
    expect((await dockerProvider().probe()).problems).toMatchObject([{ code: 'docker_unreachable', fix }])
    vi.unstubAllEnvs()
    const { ca, ...shown } = daemon.tls
    for (const tls of [{ ca }, shown]) {
      await using stranger = dockerProvider({ host: daemon.host, tls })
      const refused = { code: 'SANDBOX_UNAVAILABLE', fix }
      await expect(stranger.createBox({ ...spec, image: 'any:1' })).rejects.toMatchObject(refused)
    }
  })
})

interface Passage extends AsyncDisposable {
  readonly port: number
  /** Ends every connection, without a word. */
  cut(): void
}

const passage = (port: number): Promise<Passage> =>
  between(0, () => connect({ host: '127.0.0.1', port, allowHalfOpen: true }))

/** Passes connections on, byte for byte. */
async function between(at: number | string, open: () => Duplex): Promise<Passage> {
  const ends = new Set<Duplex>()
  const pass = (from: Socket): void => {
    const to = open()
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      ends.add(one)
      one.on('error', () => undefined).on('close', () => (ends.delete(one), other.destroy()))
      one.pipe(other)
    }
  }
  const server: Server = createServer({ allowHalfOpen: true }, pass)
  if (typeof at === 'string') server.listen(at)
  else server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  const cut = (): void => {
    for (const end of ends) end.destroy()
  }
  return {
    port: typeof at === 'string' ? 0 : (server.address() as AddressInfo).port,
    cut,
    [Symbol.asyncDispose]: async () => {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
