/**
 * One store with a proxy before each engine, to be killed: `engine-api-runner.ts <directory> <vllm url> <sglang url>`; prints a
 * session of each strategy on each wire.
 */
import { createProxy, type EngineAdapter, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [directory, vllmUrl, sglangUrl] = process.argv.slice(2)
if (directory === undefined || vllmUrl === undefined || sglangUrl === undefined)
  throw new Error('usage: engine-api-runner.ts <directory> <vllm url> <sglang url>')
const store = await openStore(directory)
const engines: readonly EngineAdapter[] = [
  vllmEngine({ url: vllmUrl }),
  sglangEngine({ url: sglangUrl, streamsIds: true }),
]
const sessions: { wire: string; strategy: string; url: string; key: string; session: string }[] = []
for (const engine of engines) {
  const proxy = createProxy({ recorder: store.recorder, engine })
  const { origin } = await proxy.listen({})
  for (const strategy of ['record', 'splice'] as const) {
    const { session, key, baseUrl } = await proxy.openSession({ policy: { strategy } })
    sessions.push({ wire: engine.name, strategy, url: baseUrl(origin), key, session: session.id })
  }
}
console.log(JSON.stringify(sessions))
