/** Slurm on this machine: a controller and two nodes of Debian's packages, as the user of the test, in a temporary folder and on loopback. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const run = promisify(execFile)
const programs = ['munged', 'slurmctld', 'slurmd', 'sbatch']
// Daemons of Debian lie where only root's PATH looks.
const path = `${process.env['PATH']}:/usr/sbin`
/** As long as anything here may take on a machine that is busy with other things. */
export const patience = { timeout: 60_000, interval: 100 }

/** Whether this machine has Slurm. Says what to do where it has not. */
export function hasSlurm(): boolean {
  const has = (program: string): boolean =>
    spawnSync('sh', ['-c', `command -v ${program}`], { env: { PATH: path } }).status === 0
  const missing = programs.filter((program) => !has(program))
  if (missing.length > 0) process.stderr.write(`No ${missing.join(', ')} here. Fix: sh scripts/machine world\n`)
  return missing.length === 0
}

export class SlurmCluster implements AsyncDisposable {
  readonly nodes = ['n1', 'n2'] as const
  readonly #folder: string
  readonly #daemons = new Map<string, ChildProcess>()
  readonly #env: NodeJS.ProcessEnv

  private constructor(folder: string) {
    this.#folder = folder
    this.#env = { ...process.env, PATH: path, SLURM_CONF: join(folder, 'slurm.conf') }
  }

  /** Resolves when both nodes take jobs. */
  static async start(folder: string): Promise<SlurmCluster> {
    await mkdir(join(folder, 'state'), { recursive: true })
    await writeFile(join(folder, 'slurm.conf'), await settings(folder))
    await writeFile(join(folder, 'cgroup.conf'), 'CgroupPlugin=cgroup/v1\n')
    const key = join(folder, 'munge.key')
    await writeFile(key, crypto.getRandomValues(new Uint8Array(128)))
    await chmod(key, 0o400)
    const cluster = new SlurmCluster(folder)
    const at = (name: string): string => join(folder, name)
    const munge = ['--socket', at('munge.socket'), '--pid-file', at('munge.pid'), '--seed-file', at('munge.seed')]
    // `--force`: a folder that is closed to others is meant so.
    cluster.#daemon('munged', ['--foreground', '--force', '--key-file', key, '--log-file', at('munge.log'), ...munge])
    cluster.#daemon('slurmctld', ['-D', '-c'])
    for (const node of cluster.nodes) cluster.#daemon('slurmd', ['-D', '-N', node], node)
    const states = () => cluster.ask('sinfo', '--Node', '--noheader', '--format=%N %T').catch(String)
    try {
      await Promise.race([expect.poll(states, patience).toBe('n1 idle\nn2 idle\n'), cluster.#anEnd()])
    } catch (error) {
      await cluster.#stop()
      throw error
    }
    return cluster
  }

  /** The daemon is killed, what it started goes on, and the controller is told that the machine is lost, as it would find out in minutes. */
  async lose(node: string): Promise<void> {
    await this.#end(node, 'SIGKILL')
    await this.ask('scontrol', 'update', `nodename=${node}`, 'state=down', 'reason=lost')
  }

  /** What a command of Slurm prints. */
  async ask(program: string, ...args: readonly string[]): Promise<string> {
    return (await run(program, args, { env: this.#env })).stdout
  }

  /** What a line of a shell prints, with a program or more before all others on its PATH. */
  async shell(line: string, bin: string, env: Readonly<Record<string, string>>): Promise<string> {
    const all = { ...this.#env, PATH: `${bin}:${path}`, ...env }
    return (await run('sh', ['-euc', line], { cwd: this.#folder, env: all })).stdout
  }

  /** What is queued or runs, each as `1_2 RUNNING n1`. */
  async queue(): Promise<readonly string[]> {
    const lines = await this.ask('squeue', '--array', '--noheader', '--format=%i %T %N')
    return lines.split('\n').filter((line) => line !== '')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.ask('scancel', '--user', userInfo().username)
      await expect.poll(() => this.queue(), patience).toEqual([])
    } finally {
      await this.#stop()
    }
  }

  async #stop(): Promise<void> {
    for (const name of [...this.#daemons.keys()].toReversed()) await this.#end(name, 'SIGTERM')
  }

  /** Rejects with what the first daemon said that ends. */
  async #anEnd(): Promise<never> {
    const ends = [...this.#daemons].map(async ([name, daemon]) => once(daemon, 'exit').then(() => name))
    const name = await Promise.race(ends)
    throw new Error(`${name} ended: ${await readFile(join(this.#folder, `${name}.out`), 'utf8')}`)
  }

  #daemon(program: string, args: readonly string[], name = program): void {
    const log = openSync(join(this.#folder, `${name}.out`), 'a')
    this.#daemons.set(name, spawn(program, args, { env: this.#env, stdio: ['ignore', log, log] }))
  }

  async #end(name: string, signal: NodeJS.Signals): Promise<void> {
    const daemon = this.#daemons.get(name)
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return
    const ended = once(daemon, 'exit')
    daemon.kill(signal)
    await ended
  }
}

async function settings(folder: string): Promise<string> {
  const ports = await freePorts(3)
  const [host = ''] = hostname().split('.')
  const { username } = userInfo()
  return `ClusterName=paddock
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${ports[0]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=${username}
SlurmdUser=${username}
AuthType=auth/munge
AuthInfo=socket=${folder}/munge.socket
StateSaveLocation=${folder}/state
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdSpoolDir=${folder}/%n
SlurmdPidFile=${folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
ReturnToService=2
NodeName=n1 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=1
NodeName=n2 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** Lines of an output that are JSON, as a node says them by `--json`. */
export async function saidIn(file: string): Promise<readonly Readonly<Record<string, string>>[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  // Both starts of a job that was requeued write there, and what is being written now is not whole.
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.flatMap((line) =>
    line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as Record<string, string>] : [],
  )
}
