import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { PaddockError } from '../../core/index.ts'

/** Where the daemon is. Nothing: what the environment says, as the docker CLI reads it, else the usual socket. */
export interface DaemonOptions {
  /** Its unix socket. Not together with `host`. */
  readonly socketPath?: string
  /** `tcp://host[:port]` or `unix:///path`. Default: `DOCKER_HOST`. */
  readonly host?: string
  /** PEM files: whom the daemon's certificate is checked against, and what is shown to it. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
}

type TlsFiles = NonNullable<DaemonOptions['tls']>

/** The same for another process, which may work elsewhere. */
export function wholePlace({ socketPath, host, tls }: DaemonOptions): DaemonOptions {
  const files = Object.entries(tls ?? {}).map(([of, file]) => [of, resolve(String(file))] as const)
  return {
    ...(socketPath !== undefined && { socketPath }),
    ...(host !== undefined && { host }),
    ...(tls !== undefined && { tls: Object.fromEntries(files) }),
  }
}

/** What a connection is made with. */
export type DaemonPlace =
  | { readonly kind: 'usual' }
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls: Tls | null }

type Tls = { readonly [of in keyof TlsFiles]: string }

type Env = Readonly<Record<string, string | undefined>>

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/
const schemes = ['tcp:', 'http:', 'https:'] as const

/**
 * Throws `CONFIG_INVALID` for what names no daemon, and `SANDBOX_CAPABILITY` for one that would be reached without
 * encryption or by `ssh://`, which costs half a second for each request.
 */
export function placeOf(o: DaemonOptions, env: Env = process.env): DaemonPlace {
  if (o.socketPath !== undefined && o.host !== undefined) {
    throw invalid('sandbox.socketPath and sandbox.host are two daemons', 'Name one of them.')
  }
  if (o.socketPath !== undefined) return { kind: 'socket', path: o.socketPath }
  const where = o.host ?? (env['DOCKER_HOST'] || undefined)
  if (where === undefined) return { kind: 'usual' }
  const key = o.host === undefined ? 'DOCKER_HOST' : 'sandbox.host'
  if (where.startsWith('unix://')) {
    const path = where.slice('unix://'.length)
    return path === '' ? { kind: 'usual' } : { kind: 'socket', path }
  }
  const url = URL.parse(where.includes('://') ? where : `tcp://${where}`)
  if (url?.protocol === 'ssh:') throw overSsh(key, where, url)
  const scheme = schemes.find((one) => one === url?.protocol)
  if (url === null || scheme === undefined || url.hostname === '') {
    throw invalid(`${key} ${where} names no daemon`, 'Write tcp://host:port or unix:///path.')
  }
  const isAsked = scheme === 'https:' || o.tls !== undefined || Boolean(env['DOCKER_TLS_VERIFY'])
  const tls = isAsked && scheme !== 'http:' ? readTls(o.tls ?? filesOf(env)) : null
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (tls === null && !loopback.test(host)) {
    throw new PaddockError('SANDBOX_CAPABILITY', `${key} ${where} would reach a daemon without encryption.`, {
      fix: `Give the daemon certificates (--tlsverify) and set sandbox.tls, or DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH; or ${tunnel(host, null)}`,
    })
  }
  return { kind: 'tcp', host, port: Number(url.port) || (tls === null ? 2375 : 2376), tls }
}

function overSsh(key: string, where: string, { hostname, username }: URL): PaddockError {
  return new PaddockError('SANDBOX_CAPABILITY', `${key} ${where}: each request would open an SSH connection.`, {
    fix: `Keep one open: ${tunnel(hostname, username)}`,
  })
}

const tunnel = (host: string, user: string | null): string =>
  `ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock ${user ? `${user}@` : ''}${host}, and set sandbox.socketPath to /tmp/docker.sock (or DOCKER_HOST to unix:///tmp/docker.sock).`

/** As the docker CLI: files of this folder that are not there are left out. */
function filesOf(env: Env): TlsFiles {
  const named = env['DOCKER_CERT_PATH'] || undefined
  if (named !== undefined && !existsSync(named)) {
    throw invalid(`DOCKER_CERT_PATH ${named} is not there`, 'Name the folder of ca.pem, cert.pem and key.pem.')
  }
  const folder = named ?? (env['DOCKER_CONFIG'] || join(homedir(), '.docker'))
  const there = (file: string): string | undefined => {
    const path = join(folder, file)
    return existsSync(path) ? path : undefined
  }
  const [ca, cert, key] = [there('ca.pem'), there('cert.pem'), there('key.pem')]
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
}

function readTls(files: TlsFiles): Tls {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    throw invalid(
      'a certificate for the Docker daemon is named without its key, or a key without its certificate',
      'Name both.',
    )
  }
  const pem = ([name, file]: readonly [string, string]): readonly [string, string] => {
    let text: string
    try {
      text = readFileSync(file, 'utf8')
    } catch (cause) {
      throw invalid(
        `${file} cannot be read`,
        `Check the path and who may read it (${name} of the Docker daemon).`,
        cause,
      )
    }
    if (!text.includes('-----BEGIN '))
      throw invalid(`${file} is no PEM file`, `Name a PEM file (${name} of the Docker daemon).`)
    return [name, text]
  }
  return Object.fromEntries(Object.entries(files).map(pem))
}

function invalid(message: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('CONFIG_INVALID', message, { fix, cause })
}
