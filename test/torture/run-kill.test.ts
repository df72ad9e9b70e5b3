import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Docker from 'dockerode'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { randomFrom } from './random.ts'

/**
 * Invariant I9 through the public interface: `paddock run` is ended by SIGKILL and by SIGINT at seeded moments, and nothing
 * of it is left in Docker, in the process table or in the store that the next command does not settle.
 */
const seed = Number(process.env.SEED ?? 20261120)
const kills = 6
const root = fileURLToPath(new URL('../..', import.meta.url))
const docker = new Docker()
const random = randomFrom(seed)
let data: string

beforeAll(async () => {
  console.log(`run-kill: seed ${seed}`)
  data = tempDir()
  // Images are built before anything is killed, so that the kills fall into rollouts.
  execFileSync(join(root, 'paddock'), runArgs(1), { cwd: root, stdio: 'ignore' })
})

describe('a run that is ended from outside', () => {
  it(`leaves nothing after SIGKILL at ${kills} seeded moments and the next command`, async () => {
    for (let kill = 0; kill < kills; kill += 1) {
      const child = startRun(8)
      const exited = once(child, 'exit')
      const own = `${child.pid}:`
      await aMoment(child)
      child.kill('SIGKILL')
      await exited
      execFileSync(join(root, 'paddock'), ['--data', data, 'gc'], { cwd: root, stdio: 'ignore' })
      expect(await ownedBy(own)).toEqual([])
      expect(await processesNaming(data)).toEqual([])
      const checked = execFileSync(join(root, 'paddock'), ['--json', 'fsck', data], { cwd: root })
      expect(JSON.parse(checked.toString())).toMatchObject({ problems: [] })
    }
  })

  it('leaves nothing after Ctrl-C, and says so with exit code 130', async () => {
    const child = startRun(8)
    const exited = once(child, 'exit')
    await aMoment(child)
    child.kill('SIGINT')
    const [code] = await exited
    expect(code).toBe(130)
    expect(await ownedBy(`${child.pid}:`)).toEqual([])
    expect(await processesNaming(data)).toEqual([])
    const listed = execFileSync(
      join(root, 'paddock'),
      ['--data', data, '--json', 'list', 'rollouts', '--limit', '1000'],
      { cwd: root },
    )
    const { rollouts }: { rollouts: { end: string | null }[] } = JSON.parse(listed.toString())
    expect(rollouts.some(({ end }) => end === 'cancelled')).toBe(true)
  })
})

function runArgs(n: number): string[] {
  const only = ['--task', 'log-forensics', '--task', 'git-archaeology']
  return ['--data', data, '--json', 'run', 'examples/tasks/terminal', ...only, '--n', String(n)]
}

/** What runs printed, for one that ends too soon. */
const printed = new WeakMap<ChildProcess, string[]>()

function startRun(n: number): ChildProcess {
  const child = spawn(join(root, 'paddock'), runArgs(n), { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  printed.set(child, lines)
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => lines.push(chunk.toString()))
  return child
}

/** Waits for a seeded number of Docker events of the run's own boxes: a moment in its work, not on a clock. */
async function aMoment(child: ChildProcess): Promise<void> {
  const due = 1 + Math.floor(random() * 14)
  const stream = await docker.getEvents({ filters: { type: ['container'], label: ['paddock.owner'] } })
  let seen = 0
  await new Promise<void>((resolve, reject) => {
    child.once('close', (code) => {
      const said = printed.get(child)?.join('').slice(-4000)
      reject(new Error(`the run ended with ${code} after ${seen} of ${due} container events: ${said}`))
    })
    stream.on('data', (chunk: Buffer) => {
      seen += chunk.toString().split(`"paddock.owner":"${child.pid}:`).length - 1
      if (seen >= due) resolve()
    })
    stream.on('error', reject)
  })
  // A stream of the Docker client is a node stream; destroying it ends the request.
  ;(stream as unknown as { destroy(): void }).destroy()
}

/** Containers, volumes and networks of an owner; the sweep gives Docker up to a minute to finish removing. */
async function ownedBy(owner: string): Promise<string[]> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const containers = await docker.listContainers({ all: true, filters: { label: ['paddock.owner'] } })
    const { Volumes } = await docker.listVolumes({ filters: { label: ['paddock.owner'] } })
    const networks = await docker.listNetworks({ filters: { label: ['paddock.owner'] } })
    const left = [
      ...containers.map((one) => ({ id: one.Id, labels: one.Labels })),
      ...(Volumes ?? []).map((one) => ({ id: one.Name, labels: one.Labels })),
      ...networks.map((one) => ({ id: one.Id, labels: one.Labels })),
    ].filter(({ labels }) => labels?.['paddock.owner']?.startsWith(owner))
    if (left.length === 0 || Date.now() > deadline) return left.map(({ id }) => id)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Processes whose command line names the data directory: the engine of a run that is gone. They end by themselves, soon. */
async function processesNaming(text: string): Promise<string[]> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const found = await namedNow(text)
    if (found.length === 0 || Date.now() > deadline) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function namedNow(text: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (command.includes(text)) found.push(`${pid} ${command.replaceAll('\0', ' ')}`)
  }
  return found
}
