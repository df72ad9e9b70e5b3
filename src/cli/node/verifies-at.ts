import { join } from 'node:path'
import type { Config, LoadedConfig } from '../../config/index.ts'
import { generatedPlace, PaddockError } from '../../core/index.ts'
import { type NodeVerification, type Verified, verifyOrder } from '../../rollout/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import { environmentFinder } from '../environments.ts'
import { sandboxOf } from '../sandbox.ts'
import type { NodeClient } from './client.ts'
import { copyOfTasks } from './task-copy.ts'

/** Boxes of verifiers, opened with the first of them. */
export class VerifierBoxes {
  readonly #config: Config
  #opened: Promise<SandboxProvider> | null = null

  constructor(config: Config) {
    this.#config = config
  }

  /** The same for all; one that cannot be opened is tried anew. */
  readonly open = (): Promise<SandboxProvider> => {
    const opened = (this.#opened ??= sandboxOf(this.#config))
    opened.catch(() => (this.#opened = null))
    return opened
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => null)
    await opened?.close()
  }
}

/**
 * How a node verifies: with its own environment, which has to be the coordinator's, and with task files and work that the coordinator gives
 * for as long as the lease holds. Throws `NODE_UNFIT` and `ENVIRONMENT_*` where it cannot, and the signal's reason. What asks a judge is
 * left to the coordinator where that verifies too; where it does not, the verdict is a fault that says what to do.
 */
export function verifiesAt(o: {
  readonly client: Pick<NodeClient, 'filesOfVerification' | 'artifact'>
  readonly loaded: LoadedConfig
  readonly sandbox: () => Promise<SandboxProvider>
  /** Where files of tasks are kept. */
  readonly directory: string
}): (one: NodeVerification, signal: AbortSignal) => Promise<Verified> {
  const find = environmentFinder(o.loaded)
  return async ({ lease, order, at, here }, signal) => {
    const { name, verifierVersion } = order.environment
    const environment = await find(name, null)
    if (environment.verifierVersion !== verifierVersion) {
      throw new PaddockError(
        'NODE_UNFIT',
        `the environment of the coordinator is ${name} ${verifierVersion}, and this node has ${name} ${environment.verifierVersion}`,
      )
    }
    const { task } = order
    let wanted: PaddockError | null = null
    const parts = {
      environment,
      // The record of this node knows nothing of what it verifies for others: there is no session to put the judge's words in.
      judge: async () => {
        wanted = new PaddockError(
          'ENGINE_INCAPABLE',
          'its verifier asks a judge, and a node asks one only for rollouts that it ran itself',
          {
            fix: 'Start the coordinator with --here, or stop it and run `paddock rescore` on its data directory.',
          },
        )
        throw wanted
      },
      signal,
      sandbox: o.sandbox,
      blobs: { get: async (digest: string) => o.client.artifact(lease, digest) },
      task: async () => {
        const files = await copyOfTasks(o.client.filesOfVerification(lease), o.directory)
        return generatedPlace(task.source) === null ? { ...task, source: join(files, at) } : task
      },
    }
    const came = await verifyOrder(parts, order)
    if (wanted !== null && here)
      throw new PaddockError('NODE_UNFIT', 'its verifier asks a judge, which this node does not for others', {
        fix: 'Nothing needs to be done: the coordinator verifies it.',
      })
    return came
  }
}
