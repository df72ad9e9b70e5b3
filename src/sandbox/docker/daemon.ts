import { existsSync } from 'node:fs'
import { Agent } from 'node:http'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type Docker from 'dockerode'
import { attachAgent } from './attach-stream.ts'
import { z } from 'zod'
import { type ErrorCode, isPaddockError, PaddockError } from '../../core/index.ts'
import type { SandboxProblem } from '../contract/index.ts'
import { type DaemonOptions, type DaemonPlace, placeOf } from './place.ts'

/** A client of the daemon. Where it cannot be one, every request is refused with the reason. */
export function connectDaemon(o: DaemonOptions = {}): Docker {
  // Loaded at the first use: it is half of what a program without boxes would load. What npm ships has it as one file (scripts/bundle.mjs).
  const client = import.meta.url.endsWith('.ts') ? 'dockerode' : '../../../vendor/dockerode.cjs'
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package exports
  const Client = createRequire(import.meta.url)(client) as typeof Docker
  return new Client(clientOptions(o))
}

/** With what the typings leave out. */
type ClientOptions = Docker.DockerOptions & { readonly agent?: Agent; readonly pathPrefix?: string }

function clientOptions(o: DaemonOptions): ClientOptions {
  // What the client would read of the environment itself is read here.
  const socket = { host: '', protocol: 'http' } as const
  let place: DaemonPlace
  try {
    place = placeOf(o)
  } catch (error) {
    return { ...socket, socketPath: '/', agent: new RefusingAgent(error) }
  }
  switch (place.kind) {
    case 'usual':
      return { ...socket, socketPath: usualSocket() }
    case 'socket':
      return { ...socket, socketPath: place.path }
    case 'tcp': {
      const { host, port, tls } = place
      const none = { ca: undefined, cert: undefined, key: undefined }
      return { host, port, protocol: tls === null ? 'http' : 'https', pathPrefix: '/', ...none, ...tls }
    }
  }
}

/** As the client itself looks for it (docker-modem 5, `findDefaultUnixSocket`). */
function usualSocket(): string {
  const own = join(homedir(), '.docker', 'run', 'docker.sock')
  return existsSync(own) ? own : '/var/run/docker.sock'
}

class RefusingAgent extends Agent {
  readonly #error: unknown
  constructor(error: unknown) {
    super()
    this.#error = error
  }
  override createConnection(): Socket {
    const socket = new Socket()
    socket.destroy(this.#error instanceof Error ? this.#error : new Error(String(this.#error)))
    return socket
  }
}

/** Throws `SANDBOX_CAPABILITY` for a daemon without the container runtime. */
export async function requireAble(docker: Docker, runtime: string | null): Promise<void> {
  const [problem] = await inabilities(docker, runtime)
  if (problem !== undefined) throw new PaddockError('SANDBOX_CAPABILITY', problem.what, { fix: problem.fix })
}

/** The same as problems that a person is told of. */
export async function inabilities(docker: Docker, runtime: string | null): Promise<readonly SandboxProblem[]> {
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
export function connectForAttach(o: DaemonOptions = {}): Docker {
  const docker = connectDaemon(o)
  const { modem } = docker
  // An option that the typings do not know. Not over TLS, which brings an agent of its own.
  if ('protocol' in modem && modem.protocol === 'http' && !('agent' in modem && modem.agent instanceof RefusingAgent))
    Object.assign(modem, { agent: attachAgent })
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

const unreachableCodes = [
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'EPERM',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
]

/** What helps against not reaching the daemon at all, '' where nothing beyond the usual does; null: it is another fault. */
export function unreachableFix(error: unknown): string | null {
  if (/HTTP request to an HTTPS server/.test(messageOf(error))) return tlsFix
  if (statusOf(error) !== null) return null
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'EACCES' || code === 'EPERM') return deniedFix
  if (/^ERR_TLS_|^ERR_SSL_|CERT|^EPROTO$|SIGNATURE/.test(code)) return tlsFix
  return unreachableCodes.includes(code) ? '' : null
}

const deniedFix = 'Run as root or as a member of the group that owns the Docker socket.'
const tlsFix =
  'Check sandbox.tls (or DOCKER_CERT_PATH: ca.pem, cert.pem, key.pem) against what the daemon was started with, and that its certificate names the host that is dialled.'

/** Turns whatever dockerode throws into a PaddockError; own errors and aborts pass through. */
export function daemonFault(error: unknown, doing: string, code: ErrorCode): unknown {
  if (isPaddockError(error) || (error instanceof Error && error.name === 'AbortError')) return error
  const unreachable = unreachableFix(error)
  if (unreachable !== null) {
    const { message } = error instanceof Error ? error : { message: String(error) }
    return new PaddockError('SANDBOX_UNAVAILABLE', `Docker could not be asked to ${doing}: ${message}.`, {
      cause: error,
      ...(unreachable === '' ? {} : { fix: unreachable }),
    })
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
