import { createRequire } from 'node:module'
import type Docker from 'dockerode'
import { attachAgent } from './attach-stream.ts'
import { z } from 'zod'
import { type ErrorCode, isPaddockError, PaddockError } from '../../core/index.ts'
import type { SandboxProblem } from '../contract/index.ts'

/** A client of the daemon at `socketPath`, else where `DOCKER_HOST` or the default socket point. */
export function connectDaemon(socketPath?: string): Docker {
  // Loaded at the first use: with what it brings (gRPC, ssh) it is half of what a program without boxes would load.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package exports
  const Client = createRequire(import.meta.url)('dockerode') as typeof Docker
  // A host of `DOCKER_HOST` would win over the socket that was asked for.
  return socketPath === undefined ? new Client() : new Client({ socketPath, host: '', protocol: 'http' })
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/

/** Where a daemon is that is not on this machine, as `DOCKER_HOST` would say it; null for one that is. */
export function remoteHost(docker: Docker): string | null {
  const { host, protocol } = modemShape.parse(docker.modem)
  if (!host || (protocol !== 'ssh' && loopback.test(host))) return null
  return `${protocol === 'ssh' ? 'ssh' : 'tcp'}://${host}`
}

/** What dockerode's connection knows of its daemon (docker-modem 5, `lib/modem.js`); the typings leave it out. */
const modemShape = z.looseObject({ host: z.string().nullish(), protocol: z.string().nullish() })

/**
 * Throws `SANDBOX_CAPABILITY` for a daemon that cannot run boxes as they are asked for: one of another machine, or one
 * without the container runtime.
 */
export async function requireAble(docker: Docker, runtime: string | null): Promise<void> {
  const [problem] = await inabilities(docker, runtime)
  if (problem !== undefined) throw new PaddockError('SANDBOX_CAPABILITY', problem.what, { fix: problem.fix })
}

/** The same as problems that a person is told of. */
export async function inabilities(docker: Docker, runtime: string | null): Promise<readonly SandboxProblem[]> {
  const remote = remoteHost(docker)
  if (remote !== null) {
    return [
      {
        code: 'docker_remote',
        what: `The Docker daemon is on another machine (${remote}), and the model path of a box is a socket of this one.`,
        fix: 'Run Paddock on the machine of the daemon, and unset DOCKER_HOST or set sandbox.socketPath.',
        weight: 'fatal',
      },
    ]
  }
  if (runtime === null) return []
  const { Runtimes } = infoShape.parse(await ask('tell its runtimes', docker.info(), 'SANDBOX_UNAVAILABLE'))
  if (runtime in Runtimes) return []
  return [
    {
      code: 'runtime_unknown',
      what: `The Docker daemon has no runtime ${runtime}; it has ${Object.keys(Runtimes).toSorted().join(', ')}.`,
      fix: 'Add it under "runtimes" in daemon.json and restart the daemon, or change sandbox.runtime.',
      weight: 'fatal',
    },
  ]
}

/** `Runtimes` of `GET /info` (Docker Engine API 1.41). */
const infoShape = z.looseObject({ Runtimes: z.record(z.string(), z.unknown()).default({}) })

/** A second client of the same daemon, for connections that are upgraded and read by `takeBytes`. */
export function connectForAttach(socketPath?: string): Docker {
  const docker = connectDaemon(socketPath)
  // An option that the typings do not know. Not over TLS or ssh, which bring agents of their own.
  if ('protocol' in docker.modem && docker.modem.protocol === 'http')
    Object.assign(docker.modem, { agent: attachAgent })
  return docker
}

/** HTTP status of a daemon's answer, or null when there was none. */
export function statusOf(error: unknown): number | null {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : null
}

/** What the daemon said, in one line. */
export function messageOf(error: unknown): string {
  if (error instanceof Error && 'json' in error && typeof error.json === 'object' && error.json !== null) {
    if ('message' in error.json && typeof error.json.message === 'string') return error.json.message.trim()
  }
  return error instanceof Error ? error.message.trim() : String(error)
}

/** Turns whatever dockerode throws into a PaddockError; own errors and aborts pass through. */
export function daemonFault(error: unknown, doing: string, code: ErrorCode): unknown {
  if (isPaddockError(error) || (error instanceof Error && error.name === 'AbortError')) return error
  if (error instanceof Error && 'code' in error) {
    if (['ECONNREFUSED', 'ENOENT', 'EACCES', 'EPERM', 'ECONNRESET', 'EPIPE'].includes(String(error.code))) {
      const denied = error.code === 'EACCES' || error.code === 'EPERM'
      return new PaddockError('SANDBOX_UNAVAILABLE', `Docker could not be asked to ${doing}: ${error.message}.`, {
        cause: error,
        ...(denied ? { fix: 'Run as root or as a member of the group that owns the Docker socket.' } : {}),
      })
    }
  }
  return new PaddockError(code, `Docker could not ${doing}: ${messageOf(error)}`, { cause: error })
}

/** Awaits a call to the daemon under {@link daemonFault}. */
export async function ask<T>(doing: string, call: Promise<T>, code: ErrorCode = 'BOX_START_FAILED'): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw daemonFault(error, doing, code)
  }
}

/** Whether a path exists in a container, running or not. */
export async function pathExists(container: Docker.Container, path: string, code: ErrorCode): Promise<boolean> {
  try {
    // The answer to this HEAD is handed out as a stream; unread, it would hold its connection open.
    const answer = (await container.infoArchive({ path })) as NodeJS.ReadableStream
    answer.resume()
    return true
  } catch (error) {
    if (statusOf(error) === 404) return false
    throw daemonFault(error, 'look into a container', code)
  }
}
