/** What is measured by `bench/proxy.ts`, alone in its process: `target.ts paddock|http-proxy <engine url> <directory>`. */
import { Agent, createServer } from 'node:http'
import httpProxy from 'http-proxy'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [kind, engineUrl, directory] = process.argv.slice(2)
if (engineUrl === undefined || directory === undefined)
  throw new Error('usage: target.ts <kind> <engine url> <directory>')

if (kind === 'paddock') {
  const store = await openStore(directory)
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) })
  const listener = await proxy.listen({})
  const keys: string[] = []
  for (let i = 0; i < 64; i += 1) keys.push((await proxy.openSession({ policy: { strategy: 'record' } })).key)
  ready(`${listener.origin}/v1`, keys)
} else {
  const forward = httpProxy.createProxyServer({ target: engineUrl, agent: new Agent({ keepAlive: true }) })
  const server = createServer((request, response) => forward.web(request, response, {}, () => response.destroy()))
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    ready(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`, ['none'])
  })
}

/** Tells where it listens; each later message is answered with the CPU time of all threads so far, in microseconds. */
function ready(url: string, keys: readonly string[]): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpuUs: user + system })
  })
  process.once('SIGINT', () => process.exit(0))
  process.send?.({ url, keys })
}
