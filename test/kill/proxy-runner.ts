/** A proxy over a store, to be killed: `proxy-runner.ts <directory> <engine url>`; prints its origin and a session. */
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [directory, engineUrl] = process.argv.slice(2)
if (directory === undefined || engineUrl === undefined)
  throw new Error('usage: proxy-runner.ts <directory> <engine url>')
const store = await openStore(directory)
const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engineUrl }) })
const listener = await proxy.listen({})
const { session, key, baseUrl } = await proxy.openSession({})
console.log(JSON.stringify({ url: baseUrl(listener.origin), key, session: session.id }))
