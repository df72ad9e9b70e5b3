/**
 * What a box costs, each figure beside its floor from the same run, alternating so that both see the same machine:
 * a command through the supervisor against a shell on one attached stream (floor) and against the daemon's exec API;
 * a box against a bare container of the same image; a request over the model path against the same socket from the host.
 */
import type Docker from 'dockerode'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Box,
  connectDaemon,
  dockerProvider,
  type ImageRef,
  type SandboxProvider,
  type ModelSocket,
} from '../../sandbox/index.ts'

export interface Spread {
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly count: number
}

export interface BoxBench {
  readonly exec: Spread
  readonly attachedShell: Spread
  readonly apiExec: Spread
  readonly execToFloor: number
  /** Commands per second over 12 boxes at once. */
  readonly commandsPerSecond: number
  readonly coldStart: Spread
  readonly bareStart: Spread
  /** From the claim of a box that was made ahead to the end of its first command; one that waits running, and paused. */
  readonly warmClaim: Spread
  readonly parkedClaim: Spread
  /** From the wish for a fork of a box with 100 MB of fresh files to the fork's first command: one, and eight at once. */
  readonly fork: Spread
  readonly eightForks: Spread
  readonly coldStartToFloor: number
  readonly modelPath: Spread
  /** What the model path adds to the socket itself. */
  readonly modelPathAddsP95Ms: number
  readonly hostSocket: Spread
  readonly destroy: Spread
  /** A small file into a running box of root and out of it, beside the daemon's archive of the same file. */
  readonly putFile: Spread
  readonly getFile: Spread
  readonly archiveByDaemon: Spread
  readonly getFileToDaemon: number
}

/** Runs the whole measurement; needs the Docker daemon and takes about half a minute. */
export async function benchBox(rounds: number): Promise<BoxBench> {
  const docker = connectDaemon()
  await using provider = dockerProvider()
  const image = await provider.ensureImage({ kind: 'paddock-base' })
  await using socket = await provider.openModelSocket()
  socket.serve({ request: (_request, response) => void response.end('{}') })
  await using box = await provider.createBox({
    image,
    profile: 'user',
    labels: { role: 'probe' },
    modelPath: { socket },
  })
  const commands = await measureCommands(docker, box, rounds)
  const starts = await measureStarts(docker, image, rounds, () =>
    provider.createBox({ image, profile: 'user', labels: { role: 'probe' } }),
  )
  const warmClaim = await measureWarmClaims(provider, image, rounds, starts.coldStart.p50Ms)
  await using parking = dockerProvider({ parkWarmBoxes: true })
  const parkedClaim = await measureWarmClaims(parking, image, rounds, starts.coldStart.p50Ms)
  const forks = await measureForks(provider, image, rounds)
  const model = await measureModelPath(box, socket, rounds)
  const files = await measureFiles(docker, provider, image)
  const boxes = await Promise.all(
    Array.from({ length: 12 }, () => provider.createBox({ image, profile: 'user', labels: { role: 'probe' } })),
  )
  const began = performance.now()
  const each = Math.max(20, Math.round(rounds / 4))
  await Promise.all(boxes.map((one) => repeat(each, () => one.exec({ command: ['/bin/true'] }))))
  const commandsPerSecond = (each * boxes.length * 1000) / (performance.now() - began)
  return {
    ...commands,
    ...starts,
    ...model,
    ...files,
    getFileToDaemon: files.getFile.p50Ms / files.archiveByDaemon.p50Ms,
    modelPathAddsP95Ms: round(model.modelPath.p95Ms - model.hostSocket.p95Ms),
    warmClaim,
    parkedClaim,
    ...forks,
    commandsPerSecond,
    execToFloor: commands.exec.p50Ms / commands.attachedShell.p50Ms,
    coldStartToFloor: starts.coldStart.p50Ms / starts.bareStart.p50Ms,
  }
}

async function measureCommands(docker: Docker, box: Box, rounds: number) {
  const exec: number[] = []
  const shell: number[] = []
  const api: number[] = []
  const container = docker.getContainer(box.id)
  const attached = await attachShell(container)
  for (let i = 0; i < rounds; i++) {
    exec.push(await timed(() => box.exec({ command: ['/bin/true'] })))
    shell.push(await timed(() => attached.run('/bin/true')))
    if (i % 10 === 0) api.push(await timed(() => execByApi(container)))
  }
  attached.close()
  return { exec: spread(exec), attachedShell: spread(shell), apiExec: spread(api) }
}

/** One `bash` on one hijacked exec: the least that a fresh process in a running container can cost. */
async function attachShell(container: Docker.Container) {
  const exec = await container.exec({ Cmd: ['bash'], AttachStdin: true, AttachStdout: true })
  const stream: Duplex = await exec.start({ hijack: true, stdin: true })
  let seen = ''
  let wanted = ''
  let arrived: () => void = () => undefined
  stream.on('data', (chunk: Buffer) => {
    seen = (seen + chunk.toString('latin1')).slice(-200)
    if (wanted !== '' && seen.includes(wanted)) arrived()
  })
  let count = 0
  return {
    run: (line: string) =>
      new Promise<void>((resolve) => {
        wanted = `<${count++}>`
        arrived = resolve
        stream.write(`${line}; echo '${wanted}'\n`)
      }),
    close: () => stream.destroy(),
  }
}

async function execByApi(container: Docker.Container): Promise<void> {
  const exec = await container.exec({ Cmd: ['/bin/true'], AttachStdout: true, AttachStderr: true })
  const stream = await exec.start({})
  await new Promise((resolve) => stream.on('end', resolve).resume())
  await exec.inspect()
}

async function measureStarts(docker: Docker, image: ImageRef, rounds: number, make: () => Promise<Box>) {
  const cold: number[] = []
  const bare: number[] = []
  const destroy: number[] = []
  for (let i = 0; i < Math.min(10, rounds); i++) {
    let box: Box | null = null
    cold.push(await timed(async () => (box = await make()).exec({ command: ['/bin/true'] })))
    destroy.push(await timed(async () => box?.destroy()))
    const began = performance.now()
    const container = await docker.createContainer({
      Image: image.tag,
      Cmd: ['sleep', '60'],
      Labels: { paddock: 'bench' },
      HostConfig: { AutoRemove: true, NetworkMode: 'none', LogConfig: { Type: 'none', Config: {} } },
    })
    await container.start()
    bare.push(performance.now() - began)
    await container.remove({ force: true })
  }
  return { coldStart: spread(cold), bareStart: spread(bare), destroy: spread(destroy) }
}

async function measureFiles(docker: Docker, provider: SandboxProvider, image: ImageRef) {
  await using box = await provider.createBox({ image, profile: 'root', labels: { role: 'probe' } })
  const container = docker.getContainer(box.id)
  const put: number[] = []
  const get: number[] = []
  const daemon: number[] = []
  for (let i = 0; i < 20; i++) {
    put.push(await timed(() => box.putFiles('/srv', [{ path: 'file', data: 'x' }])))
    get.push(await timed(() => box.getFiles('/srv/file')))
    daemon.push(await timed(async () => buffer(await container.getArchive({ path: '/srv/file' }))))
  }
  return { putFile: spread(put), getFile: spread(get), archiveByDaemon: spread(daemon) }
}

async function measureWarmClaims(
  provider: SandboxProvider,
  image: ImageRef,
  rounds: number,
  startMs: number,
): Promise<Spread> {
  const times: number[] = []
  const spec = { image, profile: 'user', labels: { role: 'probe' } } as const
  for (let i = 0; i < Math.min(10, rounds); i++) {
    const wish = provider.prefetch(spec)
    // Long enough for a start; a claim that comes earlier would measure that start.
    await sleep(startMs * 3)
    let box: Box | null = null
    times.push(await timed(async () => (box = await provider.createBox(spec)).exec({ command: ['/bin/true'] })))
    wish[Symbol.dispose]()
    await timed(async () => box?.destroy())
  }
  return spread(times)
}

/** Snapshot, start and first command, of a box that has written 100 MB. */
async function measureForks(
  provider: SandboxProvider,
  image: ImageRef,
  rounds: number,
): Promise<Pick<BoxBench, 'fork' | 'eightForks'>> {
  const labels = { role: 'probe' } as const
  await using box = await provider.createBox({ image, profile: 'user', labels })
  await box.exec({ command: 'head -c 100000000 /dev/urandom > dirty; sync' })
  const forked = async (count: number): Promise<number> => {
    const forks: Box[] = []
    const ms = await timed(async () => {
      const snapshot = await box.snapshot()
      const start = async (): Promise<void> => {
        const fork = await provider.createBox({ image: snapshot.image, profile: 'user', labels })
        forks.push(fork)
        await fork.exec({ command: ['stat', 'dirty'] })
      }
      await Promise.all(Array.from({ length: count }, start))
    })
    await Promise.all(forks.map((fork) => fork.destroy()))
    return ms
  }
  const one: number[] = []
  const eight: number[] = []
  for (let i = 0; i < Math.min(5, rounds); i++) {
    one.push(await forked(1))
    if (i < 3) eight.push(await forked(8))
  }
  return { fork: spread(one), eightForks: spread(eight) }
}

/** Both sides make a fresh connection per request; the box's side is measured inside the box. */
async function measureModelPath(box: Box, socket: ModelSocket, rounds: number) {
  const script = `import http.client, time
for i in range(${rounds}):
    a = time.perf_counter()
    c = http.client.HTTPConnection('127.0.0.1', ${new URL(box.modelUrl ?? '').port}); c.request('POST', '/', b'{}')
    c.getresponse().read(); c.close()
    print((time.perf_counter() - a) * 1000)`
  const inside = await box.exec({ command: ['python3', '-c', script] })
  const times = Buffer.from(inside.stdout).toString().trim().split('\n').map(Number)
  const host: number[] = []
  for (let i = 0; i < rounds; i++) host.push(await timed(() => post(socket.socketPath)))
  return { modelPath: spread(times), hostSocket: spread(host) }
}

function post(socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', agent: false }, (response) => {
      response.resume().on('end', resolve)
    })
    call.on('error', reject).end('{}')
  })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await work()
}

function spread(times: readonly number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
  return { p50Ms: round(at(0.5)), p95Ms: round(at(0.95)), p99Ms: round(at(0.99)), count: sorted.length }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

/** One figure for people. */
export function describeFigure(value: Spread | number): string {
  return typeof value === 'number'
    ? value.toFixed(2)
    : `p50 ${value.p50Ms} ms  p95 ${value.p95Ms} ms  p99 ${value.p99Ms} ms  (${value.count})`
}
