import type Docker from 'dockerode'
import { PaddockError } from '../../core/index.ts'
import type { BoxSpec } from '../contract/index.ts'
import { abortable } from './abortable.ts'
import { prepareAttached } from './attached.ts'
import { type BoxParts, DockerBox } from './box.ts'
import { parseEgress } from '../egress/index.ts'
import { protocolVersion } from './frames.ts'
import { boxContainer, defaultModelPort, relayContainer } from './hardened.ts'
import { providerLabel } from './labels.ts'
import { relayReady } from './relay.ts'
import { DockerSlot } from './model-socket.ts'

const startMs = 60_000

/**
 * Starts relay and box and waits for the supervisor's first words. On failure nothing is left. Under load the container
 * runtime now and then loses a process between its creation and its start; nothing has run by then, so it is tried anew,
 * once.
 */
export async function startBox(parts: BoxParts, spec: BoxSpec, signal?: AbortSignal): Promise<DockerBox> {
  requireWayOut(spec)
  try {
    return await startOnce(parts, spec, signal)
  } catch (error) {
    if (!(error instanceof PaddockError) || !/cannot start a stopped process/.test(error.message)) throw error
    return startOnce(parts, spec, signal)
  }
}

async function startOnce(parts: BoxParts, spec: BoxSpec, signal?: AbortSignal): Promise<DockerBox> {
  const bounds = AbortSignal.any([AbortSignal.timeout(startMs), ...(signal === undefined ? [] : [signal])])
  const cleanups: (() => Promise<void>)[] = []
  try {
    const port = spec.modelPath?.port ?? defaultModelPort
    // The daemon tells boxes with egress of the name server of their relay.
    const names = (spec.egress ?? 'none') === 'none' ? (parts.names?.forBox() ?? null) : null
    if (names !== null) cleanups.push(async () => names.remove())
    const isPlain = names !== null
    const relay = spec.modelPath === undefined ? null : await prepareRelay(parts, spec, { port, isPlain }, bounds)
    if (relay !== null) cleanups.push(() => relay.discard())
    const options = boxContainer(spec, parts, { relay: relay?.id ?? null, names })
    // The relay starts while the box is created; the box itself needs the namespace of a running relay.
    const relayStarts = relay?.start(bounds) ?? null
    relayStarts?.then(
      (running) => cleanups.push(() => running.end()),
      () => undefined,
    )
    const prepared = await prepareAttached(parts, mine(parts, options), bounds)
    cleanups.push(() => prepared.discard())
    const runningRelay = await relayStarts
    const short =
      runningRelay === null
        ? null
        : await relayReady(runningRelay, bounds, parts.isNear ? null : slotOf(spec).socketPath)
    const running = await prepared.start(bounds)
    cleanups.push(() => running.end())
    const box = new DockerBox(parts, spec, running, { relay: runningRelay, port, short })
    const hello = await abortable(box.channel.hello, bounds)
    if (hello.version !== protocolVersion) {
      throw new PaddockError('BOX_START_FAILED', `The supervisor speaks protocol ${hello.version}.`)
    }
    if (hello.workdirMissing) await box.makeDirectory(box.workdir)
    if (names !== null) void box.died.then(() => names.remove()).catch(() => undefined)
    return box
  } catch (error) {
    await Promise.allSettled(cleanups.reverse().map((cleanup) => cleanup()))
    signal?.throwIfAborted()
    if (error instanceof Error && error.name === 'TimeoutError') {
      throw new PaddockError('SANDBOX_TIMEOUT', `A box did not start within ${startMs / 1000} s.`, { cause: error })
    }
    throw error
  }
}

function requireWayOut(spec: BoxSpec): void {
  parseEgress(spec.egress ?? 'none')
  if ((spec.egress ?? 'none') === 'none' || spec.modelPath !== undefined) return
  throw new PaddockError('SANDBOX_CAPABILITY', 'A box without model path cannot have egress.', {
    fix: 'Open a model socket, put an egressGate behind it and pass it as modelPath.',
  })
}

function slotOf(spec: BoxSpec): DockerSlot {
  const socket = spec.modelPath?.socket
  if (socket instanceof DockerSlot) return socket
  throw new PaddockError('SANDBOX_CAPABILITY', 'The socket comes from another provider.', {
    fix: 'Open the socket with the provider that makes the box.',
  })
}

function prepareRelay(
  parts: BoxParts,
  spec: BoxSpec,
  { port, isPlain }: { readonly port: number; readonly isPlain: boolean },
  signal: AbortSignal,
) {
  const socket = slotOf(spec)
  const options = relayContainer(spec, parts, parts.isNear ? socket.directory : null, port, isPlain)
  return prepareAttached(parts, mine(parts, options), signal)
}

/** With the mark of the provider, which removes what the daemon made while its answer was lost. */
function mine({ provider }: BoxParts, options: Docker.ContainerCreateOptions): Docker.ContainerCreateOptions {
  return { ...options, Labels: { ...options.Labels, [providerLabel]: provider } }
}
