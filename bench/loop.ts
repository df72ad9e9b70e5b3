/**
 * How long a trainer waits from a settled group to its rows as arrays in Python, and how many rows a second come through
 * `/rl/v1`: groups of long rollouts in a real `paddock serve` with the scripted engine. Beside it the bytes of the same groups from
 * a server that only has them, read and decoded by the same client.
 *
 *   node bench/loop.ts [--groups 3] [--rollouts 32] [--tokens 20000] [--python python3] [--json]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { readFlags } from './flags.ts'
import { startPaddock } from './rl/client.ts'

const { groups, rollouts, tokens, python, json } = readFlags(
  { groups: 3, rollouts: 32, tokens: 20_000, python: 'python3', json: false },
  { groups: 1, rollouts: 2, tokens: 200 },
)
const told = z.strictObject({
  numpy: z.boolean(),
  rollouts: z.number(),
  rows: z.number(),
  tokens_of_row: z.number(),
  bytes_of_group: z.number(),
  wait_ms: z.number(),
  cpu_ms: z.number(),
  bare_wait_ms: z.number(),
  rows_per_s: z.number(),
  bare_rows_per_s: z.number(),
})
const folder = await mkdtemp(join(tmpdir(), 'paddock-bench-loop-'))
const kept = new Map<string, Buffer>()
const plain = createServer((request, response) => {
  void serve(request.url ?? '/').then((body) => response.writeHead(200, { 'content-length': body.length }).end(body))
})
await once(plain.listen(0, '127.0.0.1'), 'listening')
try {
  await using paddock = await startPaddock()
  const address = plain.address()
  if (address === null || typeof address === 'string') throw new Error('the plain server has no port')
  const script = fileURLToPath(new URL('loop/trainer.py', import.meta.url))
  const args = [script, paddock.control, String(paddock.pid), `http://127.0.0.1:${address.port}`, folder]
  const child = spawn(python, [...args, ...[groups, rollouts, tokens].map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PADDOCK_CONTROL_TOKEN: paddock.token, PYTHONDONTWRITEBYTECODE: '1' },
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the trainer ended with ${code}`)
  const found = told.parse(JSON.parse(output))
  console.log(json ? JSON.stringify(found, null, 2) : table(found))
} finally {
  plain.close()
  await rm(folder, { recursive: true })
}

async function serve(path: string): Promise<Buffer> {
  const known = kept.get(path) ?? (await readFile(join(folder, path.slice(1))))
  kept.set(path, known)
  return known
}

function table(found: z.infer<typeof told>): string {
  const row = (name: string, ours: number, bare: number, ratio: number) =>
    `${name.padEnd(52)}${ours.toFixed(0).padStart(10)}${bare.toFixed(0).padStart(14)}${`${ratio.toFixed(2)}x`.padStart(9)}`
  const arrays = found.numpy ? "numpy's arrays" : 'memoryviews (no numpy here)'
  return [
    `groups of ${found.rollouts} rollouts of ${found.tokens_of_row.toFixed(0)} tokens, ${(found.bytes_of_group / 1e6).toFixed(1)} MB each, into ${arrays}; load average ${loadavg()[0]?.toFixed(0)}`,
    `${''.padEnd(52)}${'/rl/v1'.padStart(10)}${'plain server'.padStart(14)}${'ratio'.padStart(9)}`,
    row('from a settled group to its rows, ms', found.wait_ms, found.bare_wait_ms, found.wait_ms / found.bare_wait_ms),
    row(
      'rows per second, several groups in one claim',
      found.rows_per_s,
      found.bare_rows_per_s,
      found.rows_per_s / found.bare_rows_per_s,
    ),
    `CPU of server and client for a group, ms${found.cpu_ms.toFixed(0).padStart(22)}: ${(found.rollouts / (found.cpu_ms / 1000)).toFixed(0)} rows per second of CPU`,
  ].join('\n')
}
