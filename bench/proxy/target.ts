/**
 * What is measured by `bench/proxy.ts`, alone in its process:
 * `target.ts record|splice|relay|relay-3|http-proxy|naive <engine url> <directory> <sessions>`.
 */
import { Agent, createServer } from 'node:http'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import httpProxy from 'http-proxy'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { startNaive } from './naive.ts'
import { startRelay } from './relay.ts'

const [kind, engineUrl, directory, sessions] = process.argv.slice(2)
if (engineUrl === undefined || directory === undefined) {
  throw new Error('usage: target.ts <kind> <engine url> <directory> <sessions>')
}

if (kind === 'record' || kind === 'splice') {
  const store = await openStore(directory)
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) })
  const listener = await proxy.listen({})
  const keys: string[] = []
  for (let i = 0; i < Number(sessions); i += 1) {
    keys.push((await proxy.openSession({ policy: { strategy: kind } })).key)
  }
  ready(`${listener.origin}/v1`, keys)
} else if (kind === 'naive') {
  ready(`http://127.0.0.1:${await startNaive(engineUrl, join(directory, '../naive.sqlite'))}/v1`, ['none'])
} else if (kind === 'relay' || kind === 'relay-3') {
  ready(`http://127.0.0.1:${await startRelay(engineUrl, kind === 'relay' ? 1 : 3)}/v1`, ['none'])
} else {
  const agent = new Agent({ keepAlive: true })
  const forward = httpProxy.createProxyServer({ target: engineUrl, agent })
  // Without this the head waits for the first byte of the body.
  forward.on('proxyRes', (_answer, _request, response) => response.flushHeaders())
  const server = createServer((request, response) => forward.web(request, response, {}, () => response.destroy()))
  server.listen(0, '127.0.0.1', 4096, () => {
    const address = server.address()
    ready(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`, ['none'])
  })
}

/** What a target tells of itself when it is asked. */
export interface Seen {
  /** After a collection, where the process lets us have one. */
  readonly rssBytes: number
  /** Of the event loop since the last question, resolution 1 ms. */
  readonly delayP99Ms: number
}

function ready(url: string, keys: readonly string[]): void {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  process.on('message', () => {
    // From the first question on: a timer of a millisecond costs CPU of its own.
    delay.enable()
    const delayP99Ms = delay.percentile(99) / 1e6
    globalThis.gc?.()
    process.send?.({ rssBytes: process.memoryUsage().rss, delayP99Ms } satisfies Seen)
    delay.reset()
  })
  process.on('SIGINT', () => process.exit(0))
  process.send?.({ url, keys })
}
