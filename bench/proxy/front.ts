/** Shards behind their front, for `bench/shards.ts`: `front.ts <engine url> <directory> <shards> <sessions of each>`. Speaks IPC. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ShardSet } from '../../src/cli/node/shard-set.ts'

const [engineUrl = '', directory = '', shards = '', sessions = ''] = process.argv.slice(2)
const program = fileURLToPath(new URL('../../test/proxy/shards.fixture.ts', import.meta.url))
const started: { readonly child: ChildProcess; readonly said: Interface }[] = []
const stop = new AbortController()
process.once('SIGINT', () => stop.abort())
const ready = Promise.withResolvers<string>()
const ended = ShardSet.run({
  host: '127.0.0.1',
  port: 0,
  shards: Number(shards),
  start: (index) => {
    const child = fork(program, [`${index + 1}/${shards}`, engineUrl, join(directory, String(index))], {
      stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
    })
    if (child.stdout === null) throw new Error('no output')
    started[index] = { child, said: createInterface({ input: child.stdout }) }
    return child
  },
  again: (index, signal) => {
    throw new Error(`shard ${index} was ended by ${signal}`)
  },
  ready: ready.resolve,
  signal: stop.signal,
})
const origin = await ready.promise
const keys = await Promise.all(
  started.map(async ({ child, said }) => {
    const line = once(said, 'line') as Promise<[string]>
    child.stdin?.write(`${JSON.stringify({ open: Number(sessions) })}\n`)
    return (JSON.parse((await line)[0]) as readonly { readonly key: string }[]).map(({ key }) => key)
  }),
)
// In turn, so that clients in order are spread over all.
const inTurn = Array.from({ length: Number(sessions) }, (_, at) => keys.map((of) => of[at] ?? '')).flat()
process.send?.({
  url: `${origin}/v1`,
  keys: inTurn,
  pids: [process.pid, ...started.map(({ child }) => child.pid ?? 0)],
})
await ended
process.disconnect()
