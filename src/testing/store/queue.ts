import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import type { Lease, Queue } from '../../trajectory/index.ts'

/** A second handle on the same queue lets the suite see that what one holder does binds another. */
export interface QueueUnderTest {
  readonly queue: Queue
  close(): Promise<void>
}

/** What every {@link Queue} driver must do. `make` gives a fresh, empty queue. */
export function queueContract(name: string, make: () => Promise<QueueUnderTest>): void {
  describe(`queue contract: ${name}`, () => {
    let made: QueueUnderTest
    let queue: Queue
    beforeEach(async () => {
      made = await make()
      queue = made.queue
    })
    afterEach(async () => made.close())

    const items = (count: number, priority = 0): { id: string; payload: unknown; priority: number }[] =>
      Array.from({ length: count }, (_, n) => ({ id: newId(), payload: { n }, priority }))
    const claimOne = async (ttlMs = 60_000): Promise<Lease | undefined> =>
      (await queue.claim('work', 'me', { limit: 1, ttlMs }))[0]
    const lease = async (ttlMs = 60_000): Promise<Lease> => {
      const claimed = await claimOne(ttlMs)
      if (claimed === undefined) throw new Error('nothing to claim')
      return claimed
    }
    // The database's clock decides, so the suite waits on the database, not on a timer of its own.
    const expired = async (): Promise<void> => {
      while ((await queue.depth('work')).leased > 0) await new Promise((resolve) => setImmediate(resolve))
    }

    it('hands each item to one holder, oldest first, higher priority before', async () => {
      const low = items(3)
      const high = items(1, 5)
      await queue.enqueue('work', low)
      await queue.enqueue('work', high)
      const first = await queue.claim('work', 'a', { limit: 2, ttlMs: 60_000 })
      const rest = await queue.claim('work', 'b', { limit: 9, ttlMs: 60_000 })
      const order = [...high, ...low].map((item) => item.id)
      expect(new Set([...first, ...rest].map((claimed) => claimed.itemId))).toEqual(new Set(order))
      expect(new Set(first.map((claimed) => claimed.itemId))).toEqual(new Set(order.slice(0, 2)))
      expect(await claimOne()).toBeUndefined()
    })

    it('enqueues an id once and gives the payload back as it was', async () => {
      const item = { id: newId(), payload: { text: 'ä\u2028', list: [1, null, 'x'] } }
      await queue.enqueue('work', [item])
      await queue.enqueue('work', [{ ...item, payload: 'changed' }])
      expect((await lease()).payload).toEqual(item.payload)
      expect(await claimOne()).toBeUndefined()
    })

    it('keeps topics apart', async () => {
      await queue.enqueue('other', items(1))
      expect(await claimOne()).toBeUndefined()
      expect(await queue.depth('other')).toEqual({ waiting: 1, leased: 0, done: 0 })
    })

    it('acknowledges once and never hands the item out again', async () => {
      await queue.enqueue('work', items(1))
      const held = await lease()
      expect(await queue.depth('work')).toEqual({ waiting: 0, leased: 1, done: 0 })
      expect(await queue.ack(held)).toBe(true)
      expect(await queue.ack(held)).toBe(false)
      expect(await queue.depth('work')).toEqual({ waiting: 0, leased: 0, done: 1 })
      expect(await claimOne()).toBeUndefined()
    })

    it('fences a holder whose lease ran out', async () => {
      await queue.enqueue('work', items(1))
      const late = await lease(1)
      await expired()
      const next = await lease()
      expect(next.itemId).toBe(late.itemId)
      expect(next.token).toBeGreaterThan(late.token)
      expect(next.attempt).toBe(late.attempt + 1)
      expect(await queue.extend(late, 60_000)).toBe(false)
      expect(await queue.ack(late)).toBe(false)
      expect(await queue.requeue(late)).toBe(false)
      expect(await queue.ack(next)).toBe(true)
    })

    it('refuses an acknowledgement after expiry even when nobody else claimed', async () => {
      await queue.enqueue('work', items(1))
      const late = await lease(1)
      await expired()
      expect(await queue.ack(late)).toBe(false)
      expect((await queue.depth('work')).waiting).toBe(1)
    })

    it('extends a lease that is held', async () => {
      await queue.enqueue('work', items(1))
      const held = await lease(60_000)
      expect(await queue.extend(held, 120_000)).toBe(true)
      expect(await claimOne()).toBeUndefined()
    })

    it('gives an item back at once, or not before its delay', async () => {
      await queue.enqueue('work', items(2))
      expect(await queue.requeue(await lease())).toBe(true)
      const again = await queue.claim('work', 'b', { limit: 2, ttlMs: 60_000 })
      expect(again).toHaveLength(2)
      for (const held of again) expect(await queue.requeue(held, 3_600_000)).toBe(true)
      expect(await claimOne()).toBeUndefined()
    })

    it('lets concurrent holders share the work without overlap', async () => {
      await queue.enqueue('work', items(50))
      const holders = await Promise.all(
        Array.from({ length: 10 }, (_, n) => queue.claim('work', `holder-${n}`, { limit: 7, ttlMs: 60_000 })),
      )
      const claimed = holders.flat().map((held) => held.itemId)
      expect(claimed).toHaveLength(50)
      expect(new Set(claimed).size).toBe(50)
    })
  })
}
