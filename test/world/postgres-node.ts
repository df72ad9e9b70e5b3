/** A node in a process of its own: claims one job, and does then what it is told. `URL WHAT TTL_MS [CLOCK_OFF_MS]` */
import { once } from 'node:events'
import { newId, sha256 } from '../../src/core/index.ts'
import { openPostgresQueue } from '../../src/trajectory/index.ts'

const [url = '', what, ttlMs, offMs = '0'] = process.argv.slice(2)
const real = Date.now
Date.now = () => real() + Number(offMs)
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)

const queue = await openPostgresQueue({ url })
const session = newId()
await queue.join({ id: session, name: 'child', labels: [] }, 600_000)
const [lease] = await queue.claim('work', session, { requestId: newId(), limit: 1, capacity: {} })
if (lease === undefined) throw new Error('nothing to claim')
await queue.beat(session, Number(ttlMs))
say(lease)
if (what === 'sweep') {
  say({ date: Date.now(), swept: await queue.sweep() })
} else {
  await once(process.stdin, 'data')
  const hand = { digest: sha256('late'), made: null, next: 'done' } as const
  say([await queue.handIn(lease, hand), await queue.handIn(lease, hand)])
  say(await queue.beat(session, 600_000))
  process.stdin.destroy()
}
await queue.close()
