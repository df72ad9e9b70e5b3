/** A shard of `shards.test.ts`: `shards.fixture.ts <which>/<of> <engine url> <directory>`. Opens sessions and tells of them line by line. */
import { createInterface } from 'node:readline'
import { Shard } from '../../src/cli/node/shard.ts'
import { createProxy, vllmEngine } from '../../src/proxy/index.ts'
import { openStore } from '../../src/trajectory/index.ts'

const [place = '', url = '', directory = ''] = process.argv.slice(2)
const shard = await Shard.begin(place)
const store = await openStore(directory)
const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url }), shard: shard.place })
const listener = await shard.listen(proxy)
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)

createInterface({ input: process.stdin }).on('line', (line) => {
  const asked = JSON.parse(line) as { readonly open?: number; readonly calls?: string }
  void (async () => {
    if (asked.open !== undefined) {
      const opened = await Promise.all(
        Array.from({ length: asked.open }, () =>
          proxy.openSession({ policy: { strategy: 'record', onDisconnect: 'abort' } }),
        ),
      )
      say(opened.map(({ session, key, baseUrl }) => ({ id: session.id, key, url: baseUrl(listener.origin) })))
    }
    if (asked.calls !== undefined) {
      const { calls } = await store.recorder.session(asked.calls)
      say(calls.map(({ commit }) => commit?.outcome.kind ?? null))
    }
  })()
})
process.once('SIGTERM', () => {
  void (async () => {
    shard.close()
    await proxy.close()
    await store.close()
    shard.end()
    process.exit(0)
  })()
})
