/**
 * CPU per streamed event and per whole answer, and time to the first byte, of the proxy with recording on, as ratios to
 * a bare http-proxy (and to nginx where it is installed) in the same run. The fake engine and the load generator run in
 * another process. Usage: `node bench/proxy.ts [--seconds N]`.
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Load, Order } from './proxy/upstream.ts'

const seconds = Number(process.argv[process.argv.indexOf('--seconds') + 1]) || 4
const scratch = mkdtempSync(join(tmpdir(), 'paddock-bench-'))

interface Target {
  readonly name: string
  readonly url: string
  readonly keys: readonly string[]
  /** CPU time of all threads so far, microseconds. */
  cpuUs(): Promise<number>
  stop(): void
}

interface Row {
  readonly name: string
  readonly usPerEvent: number
  readonly usPerRequest: number
  readonly requestsPerSecond: number
  readonly firstByteMs: number
  readonly errors: number
}

const upstream = fork(new URL('./proxy/upstream.ts', import.meta.url))
const { url: engineUrl } = await message<{ url: string }>(upstream)
try {
  const rows: Row[] = []
  for (const start of [startHttpProxy, startNginx, startPaddock]) {
    const target = await start()
    if (target === null) continue
    rows.push(await measure(target))
    target.stop()
  }
  const direct = await load({ kind: 'ttfb', url: `${engineUrl}/v1`, keys: ['none'], clients: 1, durationMs: 1500 })
  print(rows, median(direct.firstByteMs))
} finally {
  upstream.kill()
  rmSync(scratch, { recursive: true, force: true })
}

async function measure(target: Target): Promise<Row> {
  const order = (kind: Order['kind'], clients: number, durationMs: number): Order => ({
    kind,
    url: target.url,
    keys: target.keys,
    clients,
    durationMs,
  })
  await load(order('unary', 16, 1000))
  await load(order('stream', 64, 500))
  const [streams, streamUs] = await costing(target, order('stream', 64, seconds * 1000))
  const [whole, wholeUs] = await costing(target, order('unary', 16, seconds * 1000))
  const first = await load(order('ttfb', 1, 1500))
  return {
    name: target.name,
    usPerEvent: streamUs / streams.events,
    usPerRequest: wholeUs / whole.requests,
    requestsPerSecond: whole.requests / seconds,
    firstByteMs: median(first.firstByteMs),
    errors: streams.errors + whole.errors + first.errors,
  }
}

async function costing(target: Target, order: Order): Promise<[Load, number]> {
  const before = await target.cpuUs()
  const seen = await load(order)
  return [seen, (await target.cpuUs()) - before]
}

function load(order: Order): Promise<Load> {
  upstream.send(order)
  return message<Load>(upstream)
}

async function startNode(name: string, kind: string): Promise<Target> {
  const child = fork(new URL('./proxy/target.ts', import.meta.url), [kind, engineUrl, join(scratch, kind)])
  const { url, keys } = await message<{ url: string; keys: string[] }>(child)
  return {
    name,
    url,
    keys,
    cpuUs: async () => {
      child.send('cpu')
      return (await message<{ cpuUs: number }>(child)).cpuUs
    },
    stop: () => child.kill(),
  }
}

function startHttpProxy(): Promise<Target> {
  return startNode('bare http-proxy', 'http-proxy')
}

function startPaddock(): Promise<Target> {
  return startNode('paddock, recording', 'paddock')
}

/** nginx with one worker and buffering off: the floor. Null where it is not installed. */
async function startNginx(): Promise<Target | null> {
  if (spawnSync('nginx', ['-v']).error !== undefined) return null
  const port = await freePort()
  const config = join(scratch, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; worker_processes 1; pid ${scratch}/nginx.pid; error_log ${scratch}/error.log;
     events { worker_connections 4096; }
     http { access_log off; client_body_temp_path ${scratch}/b; proxy_temp_path ${scratch}/p; fastcgi_temp_path ${scratch}/f;
       uwsgi_temp_path ${scratch}/u; scgi_temp_path ${scratch}/s;
       upstream e { server ${new URL(engineUrl).host}; keepalive 256; }
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://e; proxy_http_version 1.1;
         proxy_set_header Connection ""; proxy_buffering off; keepalive_requests 1000000; } } }`,
  )
  const child = spawn('nginx', ['-c', config], { stdio: 'ignore' })
  await listening(port)
  return {
    name: 'nginx',
    url: `http://127.0.0.1:${port}/v1`,
    keys: ['none'],
    cpuUs: async () => {
      // Fields 14 and 15 of proc(5) stat: user and system time in ticks of 10 ms.
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10_000
    },
    stop: () => child.kill(),
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const up = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
    if (up) return
  }
}

async function message<T>(child: ChildProcess): Promise<T> {
  const [received] = await once(child, 'message')
  return received as T
}

function median(sorted: readonly number[]): number {
  return sorted[sorted.length >> 1] ?? Number.NaN
}

function print(rows: readonly Row[], directMs: number): void {
  const base = rows.find((row) => row.name === 'nginx') ?? rows[0]
  if (base === undefined) return
  const ratio = (value: number, of: number) => `${(value / of).toFixed(2)}x`
  console.log(
    `base of the ratios: ${base.name}; node ${process.versions.node}; direct first byte ${directMs.toFixed(2)} ms`,
  )
  console.table(
    Object.fromEntries(
      rows.map((row) => [
        row.name,
        {
          'us/event': row.usPerEvent.toFixed(1),
          'event ratio': ratio(row.usPerEvent, base.usPerEvent),
          'us/request': row.usPerRequest.toFixed(0),
          'request ratio': ratio(row.usPerRequest, base.usPerRequest),
          'requests/s': row.requestsPerSecond.toFixed(0),
          'added first byte ms': (row.firstByteMs - directMs).toFixed(2),
          errors: row.errors,
        },
      ]),
    ),
  )
}
