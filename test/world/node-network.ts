/** Networks of nodes of their own: namespaces of this machine, each with one cable to it, that can be cut. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What drops all packets and tells nobody. */
const silence = `table inet storm {
  chain in { type filter hook input priority 0; policy drop; iif lo accept; }
  chain out { type filter hook output priority 0; policy drop; oif lo accept; }
}`

/** A network namespace. It goes, and its cable with it, when the last of its processes has. */
export class NodeNetwork {
  /** This machine, as it is seen from there. */
  readonly host: string
  readonly #holder: ChildProcess

  private constructor(host: string, holder: ChildProcess) {
    this.host = host
    this.#holder = holder
  }

  /** Lays a cable to the `n`th of this process, below 64. Needs root. */
  static async open(n: number): Promise<NodeNetwork> {
    // Addresses for measuring devices (RFC 2544), which are nobody's; by process, as several may run beside each other.
    const third = process.pid % 256
    const host = `198.18.${third}.${4 * n + 1}`
    const cable = `pdk${third}x${n}`
    // Ends with this process, which holds the other end of its input.
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo there; read end'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(holder.stdout, 'data')
    const network = new NodeNetwork(host, holder)
    try {
      await run('ip', ['link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(holder.pid)])
      await run('ip', ['address', 'add', `${host}/30`, 'dev', cable])
      await run('ip', ['link', 'set', cable, 'up'])
      await network.#inside('ip', 'address', 'add', `198.18.${third}.${4 * n + 2}/30`, 'dev', 'eth0')
      for (const device of ['lo', 'eth0']) await network.#inside('ip', 'link', 'set', device, 'up')
      return network
    } catch (error) {
      network.close()
      throw error
    }
  }

  /** A program and its arguments that start a command there. */
  get through(): readonly string[] {
    return ['nsenter', '--target', String(this.#holder.pid), '--net']
  }

  /** From now on nothing comes through, and nobody is told. */
  async cut(): Promise<void> {
    await this.#inside('nft', silence)
  }

  async mend(): Promise<void> {
    await this.#inside('nft', 'delete table inet storm')
  }

  close(): void {
    this.#holder.stdin?.end()
  }

  async #inside(...command: readonly string[]): Promise<void> {
    const [program = '', ...args] = [...this.through, ...command]
    await run(program, args)
  }
}
