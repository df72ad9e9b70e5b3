/** A proxy that goes on with what another one left, in a process of its own that can be killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { firstLine } from '../proxy/support.ts'

export interface RevivingProxy {
  readonly port: number
  /** Those that it opened, one per strategy that it was given. */
  readonly sessions: readonly { readonly id: string; readonly key: string; readonly strategy: string }[]
  kill(): Promise<void>
}

/** `port` 0: any. Rejects when the process ends before it listens. */
export async function revivingProxy(
  directory: string,
  engineUrl: string,
  port: number,
  ...strategies: string[]
): Promise<RevivingProxy> {
  const args = ['test/kill/reviving-runner.ts', directory, engineUrl, String(port), ...strategies]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  return {
    ...(JSON.parse(await firstLine(child)) as Pick<RevivingProxy, 'port' | 'sessions'>),
    kill: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
