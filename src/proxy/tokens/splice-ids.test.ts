import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answerEnd, behindByCount, behindByDelta, type Closing, closingOf, joined, startsWith } from './splice-ids.ts'

/** Text ids are 10 and up, 1 to 3 are special, so nothing in a text is a terminator unless a test says so. */
const text = fc.array(fc.integer({ min: 10, max: 30 }), { maxLength: 8 })
const header = 3
const ids = (...parts: readonly (readonly number[])[]): Int32Array => Int32Array.from(parts.flat())

const shapes = fc.record({
  turns: fc.array(text, { minLength: 1, maxLength: 6 }),
  echo: text,
  sampled: text,
  behind: fc.array(text, { minLength: 1, maxLength: 3 }),
  tail: fc.constantFrom<readonly number[]>([], [9]),
  stripped: fc.boolean(),
})

/** A template: header, words, terminator, tail for every turn. */
const turn = (words: readonly number[], tail: readonly number[]): number[] => [header, ...words, 1, ...tail]

describe('the splice', () => {
  it('extends the recorded path with exactly what the template wrote behind the echo, whatever it did before it', () => {
    fc.assert(
      fc.property(shapes, ({ turns, echo, sampled, behind, tail, stripped }) => {
        const closing: Closing = { terminators: new Set([1]), tail: Int32Array.from(tail), last: Int32Array.from(tail) }
        const before = turns.flatMap((words) => turn(words, tail))
        const changed = stripped ? turns.flatMap((words) => turn(words.slice(1), tail)) : before
        const rest = behind.flatMap((words) => turn(words, tail))
        const upTo = ids(before, turn(echo, tail))
        const full = ids(changed, turn(echo, tail), rest, [header])
        const found = behindByCount(full, upTo, closing)
        expect(found?.sure).toBe(startsWith(full, upTo))
        const path = ids(before, [header, ...sampled, 1])
        const prompt = found === null ? null : joined(path, true, found)
        expect([...(prompt ?? [])]).toEqual([...path, ...tail, ...rest, header])
        // An answer that was cut off gets the terminator that the template writes.
        const open = ids(before, [header, ...sampled])
        expect([...((found && joined(open, false, found)) ?? [])]).toEqual([...open, 1, ...tail, ...rest, header])
      }),
    )
  })

  it('count and dummy context agree, and only the second knows a terminator that stands in stripped text', () => {
    const closing: Closing = { terminators: new Set([1]), tail: new Int32Array(0), last: new Int32Array(0) }
    const upTo = ids(turn([10, 1, 11], []), turn([12], []))
    const full = ids(turn([11], []), turn([12], []), turn([13], []), [header])
    const delta = behindByDelta(
      ids(turn([20], []), turn([12], [])),
      ids(turn([20], []), turn([12], []), turn([13], []), [header]),
      closing,
    )
    expect([...(delta?.rest ?? [])]).toEqual([...turn([13], []), header])
    const counted = behindByCount(full, upTo, closing)
    expect(counted?.sure).toBe(false)
    expect([...(counted?.rest ?? [])]).not.toEqual([...(delta?.rest ?? [])])
  })

  it('finds nothing where the echo does not end as turns of this template end', () => {
    const closing: Closing = { terminators: new Set([1]), tail: Int32Array.of(9), last: Int32Array.of(9) }
    const upTo = ids(turn([10], [9]), [header, 11, 2, 9])
    expect(behindByCount(ids([...upTo], turn([12], [9])), upTo, closing)).toBeNull()
    expect(behindByDelta(upTo, ids([...upTo], turn([12], [9])), closing)).toBeNull()
    expect(behindByDelta(upTo, ids([5], [...upTo]), closing)).toBeNull()
  })

  it('finds nothing where another tail stands behind the counted terminator', () => {
    const closing: Closing = { terminators: new Set([1]), tail: Int32Array.of(9), last: Int32Array.of(9) }
    const upTo = ids(turn([10], [9]), turn([11], [9]))
    expect(behindByCount(ids(turn([12], [9]), turn([11], [8]), turn([13], [9])), upTo, closing)).toBeNull()
    expect(behindByCount(ids(turn([12], [9]), turn([11], [9]), turn([13], [9])), upTo, closing)).toMatchObject({
      terminator: 1,
      sure: false,
    })
  })

  it('without terminators the token that ended an answer must be the one that opens the next turn', () => {
    const closing: Closing = { terminators: new Set(), tail: new Int32Array(0), last: new Int32Array(0) }
    const behind = behindByDelta(ids([header, 10]), ids([header, 10, 2, 11, header]), closing)
    expect(behind).toEqual({ terminator: null, rest: Int32Array.of(2, 11, header) })
    const [fits, other] = [ids([header, 20, 2]), ids([header, 20, 7])]
    expect([...((behind && joined(fits, true, behind)) ?? [])]).toEqual([header, 20, 2, 11, header])
    expect(behind && joined(other, true, behind)).toBeNull()
  })

  it('takes the dummy turn off where an engine always opens one', () => {
    const dummy = [header, 29, 1, 9, header]
    const closing: Closing = {
      terminators: new Set([1]),
      tail: Int32Array.of(9, header),
      last: Int32Array.of(9, ...dummy),
    }
    const upTo = ids(turn([10], [9]), turn([11], [9]), dummy)
    const full = ids(turn([10], [9]), turn([11], [9]), turn([12], [9]), [header])
    expect(answerEnd(upTo, closing)).toBe(6)
    const behind = { terminator: 1, rest: Int32Array.of(9, ...turn([12], [9]), header) }
    expect(behindByCount(full, upTo, closing)).toEqual({ ...behind, sure: true })
    expect(behindByDelta(upTo, full, closing)).toEqual(behind)
    // The dummy turn has terminators of its own, which count for nothing.
    const stripped = ids(turn([], [9]), turn([11], [9]), turn([12], [9]), [header])
    expect(behindByCount(stripped, upTo, closing)).toEqual({ ...behind, sure: false })
    expect(answerEnd(ids([...upTo], [7]), closing)).toBe(-1)
  })

  it('without terminators a prompt that begins with the echo goes on right behind it', () => {
    const closing: Closing = { terminators: new Set(), tail: new Int32Array(0), last: Int32Array.of(2, 29, header) }
    const upTo = ids([header, 10], [2, 29, header])
    expect(behindByCount(ids([header, 10, 4, 11]), upTo, closing)).toEqual({
      terminator: null,
      rest: Int32Array.of(4, 11),
      sure: true,
    })
    expect(behindByCount(ids([header, 12, 4, 11]), upTo, closing)).toBeNull()
  })

  it('learns a closing from two prompts that differ in one token, and from no others', () => {
    expect([...(closingOf(ids([3, 10, 1, 9]), ids([3, 11, 1, 9])) ?? [])]).toEqual([1, 9])
    expect(closingOf(ids([3, 10, 1]), ids([3, 10, 1]))).toBeNull()
    expect(closingOf(ids([3, 10, 1]), ids([3, 11, 12, 1]))).toBeNull()
    expect(closingOf(ids([4, 10, 1]), ids([3, 11, 1]))).toBeNull()
  })
})
