import type Docker from 'dockerode'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { PaddockError } from '../../core/index.ts'
import { ask, messageOf, statusOf } from './daemon.ts'

/** How long the daemon has to remove a container whose PID 1 was told to go. */
const removalMs = 8000

/**
 * A started container that lives as long as this connection to its stdin. `gone` resolves when the daemon has removed
 * it (or has become unreachable) and tells the exit status of PID 1 where it is known.
 */
export interface AttachedContainer {
  readonly id: string
  readonly container: Docker.Container
  readonly stream: Duplex
  readonly gone: Promise<{ readonly status: number | null; readonly detail: string }>
  /** Closes stdin and waits for the removal; by force after a while. Idempotent. */
  end(): Promise<void>
}

/** A container that exists and is attached, but does not run yet. */
export interface PreparedContainer {
  readonly id: string
  start(signal?: AbortSignal): Promise<AttachedContainer>
  discard(): Promise<void>
}

/** Creates and attaches. On failure nothing is left. `forAttach` is of `connectForAttach`. */
export async function prepareAttached(
  { docker, forAttach }: { readonly docker: Docker; readonly forAttach: Docker },
  options: Docker.ContainerCreateOptions,
  signal?: AbortSignal,
): Promise<PreparedContainer> {
  signal?.throwIfAborted()
  const container = await ask('create a container', create(docker, options))
  const discard = (): Promise<void> => removeByForce(container)
  try {
    signal?.throwIfAborted()
    const attach = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true }
    // With `hijack` dockerode hands out the raw socket of the upgraded connection.
    const attached = forAttach.getContainer(container.id).attach(attach)
    const stream = (await ask('attach to a container', attached)) as Duplex
    stream.on('error', () => undefined)
    // Small frames follow each other; over a network they would wait for each other's acknowledgement.
    if (stream instanceof Socket && stream.remoteAddress !== undefined)
      stream.setNoDelay(true).setKeepAlive(true, 15_000)
    return {
      id: container.id,
      discard: async () => {
        stream.destroy()
        await discard()
      },
      start: (startSignal) => start(container, stream, startSignal),
    }
  } catch (error) {
    await discard()
    throw error
  }
}

async function create(docker: Docker, options: Docker.ContainerCreateOptions): Promise<Docker.Container> {
  try {
    return await docker.createContainer(options)
  } catch (error) {
    if (statusOf(error) !== 404 || !/no such image/i.test(messageOf(error))) throw error
    throw new PaddockError('IMAGE_MISSING', `There is no image ${options.Image}.`, { cause: error })
  }
}

async function start(container: Docker.Container, stream: Duplex, signal?: AbortSignal): Promise<AttachedContainer> {
  const gone = container.wait({ condition: 'removed' }).then(
    (answer: { StatusCode?: number }) => ({ status: answer.StatusCode ?? null, detail: '' }),
    (error: unknown) => ({ status: null, detail: statusOf(error) === 404 ? '' : messageOf(error) }),
  )
  try {
    signal?.throwIfAborted()
    await ask('start a container', container.start())
  } catch (error) {
    stream.destroy()
    await removeByForce(container)
    throw error
  }
  let ending: Promise<void> | null = null
  const end = async (): Promise<void> => {
    stream.destroy()
    if (await within(gone, removalMs)) return
    await removeByForce(container)
    await within(gone, removalMs)
  }
  return { id: container.id, container, stream, gone, end: () => (ending ??= end()) }
}

/** Removes whatever state it is in; a container that is already gone or going is fine. */
export async function removeByForce(container: Docker.Container): Promise<void> {
  try {
    await container.remove({ force: true, v: true })
  } catch (error) {
    const status = statusOf(error)
    if (status === 404 || status === 409) return
    throw new PaddockError('BOX_START_FAILED', `Docker could not remove a container: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function within(event: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)))
  const result = await Promise.race([event.then(() => true), late])
  clearTimeout(timer)
  return result
}
