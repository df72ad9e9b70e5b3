/**
 * A proxy to be killed, warm: everything is loaded when the first line comes on stdin, only then the store is opened.
 * `warm-proxy-runner.ts <directory> <engine url> <strategy>...`; prints its origin and a session per strategy.
 */
import { once } from 'node:events'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [directory, engineUrl, ...strategies] = process.argv.slice(2)
if (directory === undefined || engineUrl === undefined) {
  throw new Error('usage: warm-proxy-runner.ts <directory> <engine url> <strategy>...')
}
console.log(JSON.stringify({ loaded: process.pid }))
await once(process.stdin, 'data')
const store = await openStore(directory)
const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) })
const { origin } = await proxy.listen({})
const sessions = await Promise.all(
  strategies.map(async (name) => {
    const strategy = name === 'splice' ? 'splice' : 'record'
    const { session, key } = await proxy.openSession({ policy: { strategy, history: 'sampled' } })
    return { id: session.id, key, strategy }
  }),
)
console.log(JSON.stringify({ origin, sessions }))
