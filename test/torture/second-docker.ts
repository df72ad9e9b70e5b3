import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import Docker from 'dockerode'
import { z } from 'zod'
import { dockerProvider } from '../../src/sandbox/index.ts'

const run = promisify(execFile)

/** A Docker daemon that sees none of our files: own processes, mounts, data and addresses. */
export interface SecondDocker extends AsyncDisposable {
  readonly host: string
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
  /** Folder of ca.pem, cert.pem and key.pem. */
  readonly certificates: string
  readonly port: number
  readonly client: Docker
  /** Copies what boxes stand on from the daemon of this machine. */
  bringBase(): Promise<void>
}

/** Starts one on loopback, with TLS for both sides. What it makes goes with it: mounts and processes by their namespaces. */
export async function secondDocker(): Promise<SecondDocker> {
  const directory = await mkdtemp('/var/tmp/paddock-second-docker-')
  const certificates = join(directory, 'certificates')
  const data = join(directory, 'data')
  const parent = `/paddock-second-${randomBytes(4).toString('hex')}`
  mkdirSync(certificates)
  mkdirSync(data)
  await makeCertificates(certificates)
  // Made here and handed over, for its own network namespace has no way to ours: a daemon without a bridge removes docker0.
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const host = `tcp://127.0.0.1:${port}`
  const pem = (name: string): string => join(certificates, name)
  const daemon = Object.entries({
    host: 'fd://',
    tlsverify: 'true',
    tlscacert: pem('ca.pem'),
    tlscert: pem('server.pem'),
    tlskey: pem('server-key.pem'),
    'data-root': data,
    'exec-root': '/run/docker',
    pidfile: '/run/docker.pid',
    'config-file': '/run/none.json',
    bridge: 'none',
    iptables: 'false',
    ip6tables: 'false',
    'ip-forward': 'false',
    'ip-masq': 'false',
    'cgroup-parent': parent,
    'log-level': 'info',
  }).map(([name, value]) => `--${name}=${value}`)
  writeFileSync(
    join(directory, 'start'),
    `mount -t tmpfs none /run && mkdir /run/docker && echo '{}' > /run/none.json && export LISTEN_PID=$$ LISTEN_FDS=1 && exec dockerd "$@" 2>&1`,
  )
  // Its processes end with the first of the namespace, and its mounts with the last.
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
  const child = spawn('unshare', [...namespaces, 'sh', join(directory, 'start'), ...daemon], {
    stdio: ['ignore', 'pipe', 'inherit', fdOf(listener)],
  })
  listener.close()
  const tls = { ca: pem('ca.pem'), cert: pem('cert.pem'), key: pem('key.pem') }
  const [ca, cert, key] = [tls.ca, tls.cert, tls.key].map((file) => readFileSync(file))
  const client = new Docker({ host: '127.0.0.1', port, protocol: 'https', ca, cert, key })
  const close = async (): Promise<void> => {
    // Its output is closed once the daemon itself is gone.
    const ended = once(child, 'close')
    if (child.kill('SIGKILL')) await ended
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    removeCgroups(parent)
  }
  try {
    await listens(child)
  } catch (error) {
    await close()
    throw error
  }
  const remote = ['--tlsverify', '--tlscacert', tls.ca, '--tlscert', tls.cert, '--tlskey', tls.key, '-H', host]
  const bringBase = async (): Promise<void> => {
    await using own = dockerProvider({ warmBoxes: 0 })
    const { tag: debian } = await own.ensureImage({ kind: 'debian' })
    const { tag: base } = await own.ensureImage({ kind: 'paddock-base' })
    await run('sh', ['-c', `docker save ${debian} ${base} | docker "$@" load`, 'sh', ...remote])
  }
  return { host, port, tls, certificates, client, bringBase, [Symbol.asyncDispose]: close }
}

/** Resolves when the daemon says that it listens. What it says later is read and forgotten. */
async function listens(child: ChildProcess): Promise<void> {
  const said: string[] = []
  if (child.stdout === null) throw new Error('a daemon without output')
  const lines = createInterface(child.stdout)
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      said.push(line)
      if (said.length > 50) said.shift()
      if (line.includes('API listen on')) resolve()
    })
    lines.on('close', () => reject(new Error(`dockerd did not start:\n${said.join('\n')}`)))
  })
}

/** The descriptor of what listens (`fd` of libuv's handle, which the typings leave out). */
function fdOf(server: Server): number {
  return z.looseObject({ _handle: z.looseObject({ fd: z.int().min(0) }) }).parse(server)._handle.fd
}

/** An authority, a certificate of the daemon for 127.0.0.1, and one of a client. */
async function makeCertificates(directory: string): Promise<void> {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const openssl = (...args: readonly string[]) => run('openssl', args, { cwd: directory })
  await openssl('req', '-x509', ...key, '-subj', '/CN=test authority', '-keyout', 'ca-key.pem', '-out', 'ca.pem')
  const signed = async (name: string, subject: string, key_: string, extra: string): Promise<void> => {
    await openssl('req', ...key, '-subj', subject, '-keyout', key_, '-out', `${name}.csr`)
    writeFileSync(join(directory, `${name}.ext`), extra)
    const ca = ['-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial']
    await openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      ...ca,
      '-days',
      '2',
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.pem`,
    )
  }
  await signed('server', '/CN=daemon', 'server-key.pem', 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth')
  await signed('cert', '/CN=client', 'key.pem', 'extendedKeyUsage=clientAuth')
}

/** Directories of control groups stay when their last process was killed. */
function removeCgroups(parent: string): void {
  const remove = (path: string): void => {
    try {
      for (const entry of readdirSync(path, { withFileTypes: true }))
        if (entry.isDirectory()) remove(join(path, entry.name))
      rmdirSync(path)
    } catch {
      // Of a controller in which it never was.
    }
  }
  for (const root of ['', ...readdirSync('/sys/fs/cgroup')]) remove(join('/sys/fs/cgroup', root, parent))
}
