/**
 * A proxy that goes on with what another one left, to be killed: `reviving-runner.ts <directory> <engine url> <port>
 * <strategy>...`; prints its origin and a new session per strategy.
 */
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [directory, engineUrl, port, ...strategies] = process.argv.slice(2)
if (directory === undefined || engineUrl === undefined || port === undefined) {
  throw new Error('usage: reviving-runner.ts <directory> <engine url> <port> <strategy>...')
}
const store = await openStore(directory)
const engine = vllmEngine({ url: engineUrl })
const proxy = createProxy({ recorder: store.recorder, engine, revives: () => true })
const listener = await proxy.listen({ port: Number(port) })
const sessions = await Promise.all(
  strategies.map(async (name) => {
    const strategy = name === 'splice' ? 'splice' : 'record'
    const { session, key } = await proxy.openSession({ policy: { strategy, history: 'sampled' } })
    return { id: session.id, key, strategy }
  }),
)
console.log(JSON.stringify({ port: listener.port, sessions }))
