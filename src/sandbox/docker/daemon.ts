import Docker from 'dockerode'
import { attachAgent } from './attach-stream.ts'
import { type ErrorCode, isPaddockError, PaddockError } from '../../core/index.ts'

/** A client of the daemon at `socketPath`, else where `DOCKER_HOST` or the default socket point. */
export function connectDaemon(socketPath?: string): Docker {
  return socketPath === undefined ? new Docker() : new Docker({ socketPath })
}

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
