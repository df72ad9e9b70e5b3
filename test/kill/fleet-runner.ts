/**
 * A proxy over several replicas, to be killed: `fleet-runner.ts <directory> <engine url>…`. Prints its origin and four
 * sessions, two of each strategy; pauses and weight updates come as messages of its parent and are answered.
 */
import { createProxy, vllmEngine, type PauseOrder, type WeightsOrder } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

type Order =
  | { readonly what: 'weights'; readonly order: WeightsOrder }
  | { readonly what: 'pause'; readonly order: PauseOrder }
  | { readonly what: 'resume' | 'close' }

const [directory, ...urls] = process.argv.slice(2)
if (directory === undefined || urls.length === 0) throw new Error('usage: fleet-runner.ts <directory> <engine url>…')
const store = await openStore(directory)
const [first, ...others] = urls.map((url) => vllmEngine({ url }))
if (first === undefined) throw new Error('no engine')
const proxy = createProxy({
  recorder: store.recorder,
  engine: first,
  replicas: others,
  fleet: { healthMs: 50, ejectMs: 50, maxEjectMs: 400 },
})
// The one before may have died between a pause and its end.
await proxy.resumeEngine()
const listener = await proxy.listen({})
const sessions = []
for (const strategy of ['auto', 'record', 'auto', 'record'] as const) {
  const { session, key, baseUrl } = await proxy.openSession({ policy: { strategy } })
  sessions.push({ id: session.id, key, url: baseUrl(listener.origin) })
}
process.on('message', (message) => {
  // The parent is the test beside this file.
  carryOut(message as Order).then(
    (outcome) => process.send?.({ outcome: outcome ?? null }),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
console.log(JSON.stringify({ sessions }))

async function carryOut(order: Order): Promise<unknown> {
  switch (order.what) {
    case 'weights':
      return proxy.updateWeights(order.order)
    case 'pause':
      return proxy.pauseEngine(order.order)
    case 'resume':
      return proxy.resumeEngine()
    case 'close':
      await proxy.close()
      await store.close()
      return null
  }
}
