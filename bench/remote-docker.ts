/**
 * What the model path costs where the Docker daemon is on another machine: over the stream of the box's relay, with TLS or
 * through a tunnel to a socket as `ssh -L` makes one, beside the mounted socket of a daemon of this machine. All on loopback,
 * so a network's own time comes on top.
 *
 *   node bench/remote-docker.ts [--calls 500] [--rounds 5] [--megabytes 64]
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Box, dockerProvider, type SandboxProvider } from '../src/sandbox/index.ts'
import { secondDocker } from '../test/torture/second-docker.ts'
import { readFlags } from './flags.ts'

const { calls, rounds, megabytes } = readFlags(
  { calls: 500, rounds: 5, megabytes: 64 },
  { calls: 16, rounds: 1, megabytes: 1 },
)

const program = `import http.client, sys, threading, time
port, kind, calls, parallel = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
body = b'x' * 2000
def work():
    line = http.client.HTTPConnection('127.0.0.1', port)
    for _ in range(calls // parallel):
        line.request('POST' if kind == 'calls' else 'GET', '/' + kind, body if kind == 'calls' else None)
        line.getresponse().read()
begun = time.perf_counter()
all = [threading.Thread(target=work) for _ in range(parallel)]
for one in all: one.start()
for one in all: one.join()
print(time.perf_counter() - begun)`

const much = Buffer.alloc(megabytes << 20, 'x')
const answer = Buffer.alloc(2000, 'y')

interface Way {
  readonly name: string
  readonly box: Box
}

async function wayOf(name: string, provider: SandboxProvider): Promise<Way> {
  const image = await provider.ensureImage({ kind: 'paddock-base' })
  const socket = await provider.openModelSocket()
  socket.serve({
    request: (request, response) =>
      void request.resume().on('end', () => response.end(request.url === '/much' ? much : answer)),
  })
  const box = await provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, modelPath: { socket } })
  return { name, box }
}

/** Seconds that it took in the box. */
async function seconds({ box }: Way, kind: 'calls' | 'much', count: number, parallel: number): Promise<number> {
  const port = new URL(box.modelUrl ?? '').port
  const command = ['python3', '-c', program, port, kind, String(count), String(parallel)]
  const result = await box.exec({ command, timeoutMs: 300_000 })
  if (result.kind !== 'exited' || result.code !== 0) throw new Error(Buffer.from(result.stderr).toString())
  return Number(Buffer.from(result.stdout).toString())
}

const median = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0

await using daemon = await secondDocker()
await daemon.bringBase()
const { ca, cert, key } = daemon.tls
const pem = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) }
// A tunnel as `ssh -L` makes one, without what its ciphers cost.
const socketPath = `${daemon.certificates}/tunnel.sock`
const tunnel = createServer({ allowHalfOpen: true }, (from) => {
  const to = connectTls({ host: '127.0.0.1', port: daemon.port, ...pem }).setNoDelay(true)
  from.on('error', () => undefined).on('close', () => to.destroy())
  to.on('error', () => undefined).on('close', () => from.destroy())
  from.pipe(to).pipe(from)
}).listen(socketPath)
await once(tunnel, 'listening')

const providers = [
  ['mounted socket', dockerProvider({ warmBoxes: 0 })],
  ['stream, TLS', dockerProvider({ host: daemon.host, tls: daemon.tls, warmBoxes: 0 })],
  ['stream, tunnel', dockerProvider({ socketPath, warmBoxes: 0 })],
] as const
try {
  const ways: Way[] = []
  for (const [name, provider] of providers) ways.push(await wayOf(name, provider))
  const rows: { name: string; one: number[]; many: number[]; much: number[] }[] = ways.map(({ name }) => {
    return { name, one: [], many: [], much: [] }
  })
  for (let round = 0; round <= rounds; round++) {
    for (const [i, way] of ways.entries()) {
      const one = (await seconds(way, 'calls', calls, 1)) / calls
      const many = calls / (await seconds(way, 'calls', calls, 16))
      const bulk = megabytes / (await seconds(way, 'much', 1, 1))
      // The first round warms up.
      const row = rows[i]
      if (row === undefined || round === 0) continue
      row.one.push(one)
      row.many.push(many)
      row.much.push(bulk)
    }
  }
  const [floor] = rows
  const times = (list: readonly number[], of: 'one' | 'many' | 'much'): string =>
    `${median(list.map((value, round) => value / (floor?.[of][round] ?? 1))).toFixed(2)}x`
  console.log(`calls of 2 kB each way from one box; medians of ${rounds} rounds, and of the ratios within rounds`)
  console.log(
    `${''.padEnd(18)}${'a call'.padStart(18)}${'16 at once'.padStart(22)}${`${megabytes} MB answer`.padStart(24)}`,
  )
  for (const { name, one, many, much: bulk } of rows) {
    const cells = [
      `${(median(one) * 1000).toFixed(2)} ms ${times(one, 'one')}`.padStart(18),
      `${Math.round(median(many))}/s ${times(many, 'many')}`.padStart(22),
      `${Math.round(median(bulk))} MB/s ${times(bulk, 'much')}`.padStart(24),
    ]
    console.log(`${name.padEnd(18)}${cells.join('')}`)
  }
} finally {
  for (const [, provider] of providers) await provider.close()
  tunnel.close()
}
