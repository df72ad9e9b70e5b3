import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import {
  type Entry,
  Follower,
  frameOf,
  FrameQueue,
  generationsOf,
  headBytes,
  Journal,
  readFrame,
  removeBefore,
} from './index.ts'

let directory: string
let log: string
beforeEach(async () => {
  directory = tempDir()
  log = join(directory, 'log.sqlite')
})

const start = { generation: 1, offset: 0 }

function readAll(follower: Follower): { head: unknown; parts: number[][] }[] {
  const found = []
  for (let entry = follower.next(); entry !== null; entry = follower.next()) {
    found.push({ head: entry.head, parts: entry.parts.map((part) => [...part]) })
  }
  return found
}

describe('a journal', () => {
  it('gives every entry back in order, over any number of generations, while it is written', () => {
    const entry = fc.record({
      head: fc.jsonValue(),
      parts: fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(entry, fc.boolean()), { maxLength: 40 }), (entries) => {
        removeBefore(log, 100)
        const journal = new Journal(log, 1, 700)
        const follower = new Follower(log, start)
        const found: unknown[] = []
        for (const [one, readNow] of entries) {
          journal.append(frameOf(one))
          if (readNow) found.push(...readAll(follower))
        }
        found.push(...readAll(follower))
        const plain = entries.map(([{ head, parts }]) => ({ head, parts: parts.map((part) => [...part]) }))
        // JSON knows no minus zero.
        expect(JSON.stringify(found)).toBe(JSON.stringify(plain))
        follower.close()
        journal.close()
      }),
      { numRuns: 60 },
    )
  })

  it('ends where a frame is cut or spoiled, and goes on when the rest comes', () => {
    const journal = new Journal(log, 1)
    const frames = [1, 2].map((n) => frameOf({ head: { n }, parts: [Buffer.alloc(50, n)] }))
    for (const frame of frames) journal.append(frame)
    journal.close()
    const file = `${log}-journal-1`
    const whole = readFileSync(file)
    const first = headBytes + (frames[0]?.length ?? 0)
    for (let length = first; length < whole.length; length += 1) {
      writeFileSync(file, whole.subarray(0, length))
      const follower = new Follower(log, start)
      expect(readAll(follower)).toHaveLength(1)
      appendFileSync(file, whole.subarray(length))
      expect(readAll(follower)).toHaveLength(1)
      follower.close()
    }
    for (let at = first; at < whole.length; at += 1) {
      const spoiled = Buffer.from(whole)
      spoiled[at] = (spoiled[at] ?? 0) ^ 0x10
      writeFileSync(file, spoiled)
      const follower = new Follower(log, start)
      expect(readAll(follower), `byte ${at}`).toHaveLength(1)
      follower.close()
    }
  })

  it('goes on behind a generation that ends in half a frame', () => {
    const journal = new Journal(log, 1, 1)
    journal.append(frameOf({ head: 'a', parts: [] }))
    journal.append(frameOf({ head: 'b', parts: [] }))
    journal.close()
    appendFileSync(`${log}-journal-1`, Buffer.from([9, 0, 0, 0, 1]))
    const follower = new Follower(log, start)
    expect(readAll(follower).map(({ head }) => head)).toEqual(['a', 'b'])
    follower.close()
  })

  it('can be followed from any place between two entries', () => {
    const journal = new Journal(log, 1, 60)
    const places = [start]
    for (let n = 0; n < 9; n += 1) {
      journal.append(frameOf({ head: n, parts: [] }))
      places.push(journal.end)
    }
    journal.close()
    for (const [n, place] of places.entries()) {
      const follower = new Follower(log, place)
      expect(readAll(follower).map(({ head }) => head)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8].slice(n))
      follower.rewind(start)
      expect(readAll(follower)).toHaveLength(9)
      follower.close()
    }
  })

  it('overwrites what came of a failed write', () => {
    const journal = new Journal(log, 1)
    const file = `${log}-journal-1`
    const frame = frameOf({ head: 'x'.repeat(200), parts: [] })
    // What a disk that filled up in the middle leaves behind.
    appendFileSync(file, frame.subarray(0, 150))
    journal.append(frameOf({ head: 'short', parts: [] }))
    const follower = new Follower(log, start)
    expect(readAll(follower).map(({ head }) => head)).toEqual(['short'])
    truncateSync(file, journal.end.offset)
    journal.append(frame)
    expect(readAll(follower)).toHaveLength(1)
    follower.close()
    journal.close()
  })

  it('gives what is written now, where what was at hand has been overwritten', () => {
    const journal = new Journal(log, 1)
    const file = `${log}-journal-1`
    journal.append(frameOf({ head: 'first', parts: [] }))
    // Half of a frame that the disk had no room for: its reader has it at hand together with the first.
    appendFileSync(file, frameOf({ head: 'x'.repeat(200), parts: [] }).subarray(0, 150))
    const follower = new Follower(log, start)
    expect(follower.next()).toMatchObject({ head: 'first' })
    journal.append(frameOf({ head: 'second', parts: [] }))
    expect(follower.next()).toMatchObject({ head: 'second' })
    expect(follower.next()).toBeNull()
    follower.close()
    journal.close()
  })

  it('loses old generations only', () => {
    const journal = new Journal(log, 1, 1)
    for (const n of [1, 2, 3]) journal.append(frameOf({ head: n, parts: [] }))
    expect(generationsOf(log)).toEqual([1, 2, 3])
    removeBefore(log, journal.end.generation)
    expect(generationsOf(log)).toEqual([3])
    journal.close()
  })
})

describe('a queue of frames', () => {
  /** Of one, two and three bytes a unit, below and above what is taken for short. */
  const longTexts = ['a', 'ä', '€'].flatMap((unit) => [unit.repeat(16_000), unit.repeat(150_000)])
  const part = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: 'binary', maxLength: 50 }))
  const entry: fc.Arbitrary<Entry> = fc.record({
    head: fc.oneof(fc.jsonValue(), fc.uint8Array({ maxLength: 130 })),
    parts: fc.array(
      fc.oneof({ weight: 20, arbitrary: part }, fc.constantFrom(Buffer.alloc(400_000, 7), ...longTexts)),
      { maxLength: 4 },
    ),
  })

  it('holds what was put in, however much is taken out between', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(entry, fc.nat(4)), { maxLength: 30 }), (steps) => {
        const queue = new FrameQueue()
        const waiting: { size: number; plain: string }[] = []
        const drop = (): void => {
          const first = waiting.shift()
          if (first === undefined) return
          const read = readFrame(Buffer.from(queue.first(first.size)))
          expect(read === null ? null : plainOf(read)).toBe(first.plain)
          queue.drop(first.size)
        }
        for (const [one, dropped] of steps) {
          waiting.push({ size: queue.push(one), plain: plainOf(one) })
          for (let count = 0; count < dropped - 1; count += 1) drop()
        }
        while (waiting.length > 0) drop()
      }),
      { seed: 20_261_122, numRuns: 60 },
    )
  })
})

/** A head of bytes and parts of text as what they are on disk. */
function plainOf({ head, parts }: Entry): string {
  const told = head instanceof Uint8Array ? `bytes ${Buffer.from(head).toString('hex')}` : JSON.stringify(head)
  return [told, ...parts.map((part) => Buffer.from(part as Uint8Array).toString('base64'))].join('\n')
}
