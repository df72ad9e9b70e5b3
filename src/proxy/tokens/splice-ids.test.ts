import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answerEnd, behindLetter, behindPrefix, type Closing, closingOf, joined, startsWith } from './splice-ids.ts'

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
        const plain = behindPrefix(full, upTo, closing)
        expect(plain !== null).toBe(startsWith(full, upTo))
        const [one, other] = [31, 32].map((letter) => ids(changed, turn([letter], tail), rest, [header]))
        const found = behindLetter(full, { one: one ?? ids(), other: other ?? ids(), end: 0 }, closing)
        if (plain !== null) expect(found).toEqual(plain)
        const path = ids(before, [header, ...sampled, 1])
        const prompt = found === null ? null : joined(path, true, found)
        expect([...(prompt ?? [])]).toEqual([...path, ...tail, ...rest, header])
        // An answer that was cut off gets the terminator that the template writes.
        const open = ids(before, [header, ...sampled])
        expect([...((found && joined(open, false, found)) ?? [])]).toEqual([...open, 1, ...tail, ...rest, header])
      }),
    )
  })

  it('a letter in the place of the answer shows what stands behind it, where it is the end of the whole prompt too', () => {
    const closing: Closing = { terminators: new Set([1]), tail: Int32Array.of(9), last: Int32Array.of(9) }
    const behind = [1, 9, ...turn([13], [9]), header]
    const full = ids(turn([11, 1], [9]), [header, 12, 14], behind)
    const lettered = (letter: number, end = behind): Int32Array => ids(turn([11, 1], [9]), [header, letter], end)
    const behindText = (
      prompt: Int32Array,
      [one, other]: readonly [Int32Array, Int32Array],
      more: Partial<Closing> = {},
    ): ReturnType<typeof behindLetter> => behindLetter(prompt, { one, other, end: 0 }, { ...closing, ...more })
    const found = behindText(full, [lettered(20), lettered(21)])
    expect(found).toEqual({ terminator: 1, rest: Int32Array.from(behind.slice(1)) })
    // Another end than the prompt's, no terminator behind the letter, another tail, a letter that changes more.
    const other = [1, 9, ...turn([15], [9]), header]
    expect(behindText(full, [lettered(20, other), lettered(21, other)])).toBeNull()
    const bare = ids(turn([11, 1], [9]), [header, 12, 14], turn([13], [9]))
    expect(behindText(bare, [lettered(20, turn([13], [9])), lettered(21, turn([13], [9]))])).toBeNull()
    const open = [lettered(20, turn([13], [])), lettered(21, turn([13], []))] as const
    expect(behindText(ids([header, 12], turn([13], [])), open, { tail: ids() })).toBeNull()
    expect(behindText(full, [lettered(20), lettered(21)], { tail: Int32Array.of(8) })).toBeNull()
    expect(behindText(full, [lettered(20), ids([22], [...lettered(21)])])).toBeNull()
    expect(behindText(ids([9]), [lettered(20), lettered(21)])).toBeNull()
    // What closes a tool call stands before the terminator: the model sampled it.
    const called = (letter: number): Int32Array => ids([header, letter, 17, 18], behind)
    const spelled = ids([header, 12, 17, 18], behind)
    expect(behindLetter(spelled, { one: called(20), other: called(21), end: 2 }, closing)).toEqual(found)
    expect(behindText(spelled, [called(20), called(21)])).toBeNull()
  })

  it('finds nothing where the echo does not end as turns of this template end', () => {
    const closing: Closing = { terminators: new Set([1]), tail: Int32Array.of(9), last: Int32Array.of(9) }
    const upTo = ids(turn([10], [9]), [header, 11, 2, 9])
    expect(behindPrefix(ids([...upTo], turn([12], [9])), upTo, closing)).toBeNull()
    expect(behindPrefix(ids([5], [...upTo]), upTo, closing)).toBeNull()
  })

  it('finds nothing where another tail stands behind the terminator', () => {
    const closing: Closing = { terminators: new Set([1]), tail: Int32Array.of(9), last: Int32Array.of(9) }
    const upTo = ids(turn([10], [9]), turn([11], [9]))
    expect(behindPrefix(ids(turn([10], [9]), turn([11], [8]), turn([13], [9])), upTo, closing)).toBeNull()
    expect(behindPrefix(ids(turn([10], [9]), turn([11], [9]), turn([13], [9])), upTo, closing)).not.toBeNull()
  })

  it('without terminators the token that ended an answer must be the one that opens the next turn', () => {
    const closing: Closing = { terminators: new Set(), tail: new Int32Array(0), last: new Int32Array(0) }
    const behind = behindPrefix(ids([header, 10, 2, 11, header]), ids([header, 10]), closing)
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
    expect(behindPrefix(full, upTo, closing)).toEqual(behind)
    expect(answerEnd(ids([...upTo], [7]), closing)).toBe(-1)
  })

  it('without terminators a prompt that begins with the echo goes on right behind it', () => {
    const closing: Closing = { terminators: new Set(), tail: new Int32Array(0), last: Int32Array.of(2, 29, header) }
    const upTo = ids([header, 10], [2, 29, header])
    expect(behindPrefix(ids([header, 10, 4, 11]), upTo, closing)).toEqual({
      terminator: null,
      rest: Int32Array.of(4, 11),
    })
    expect(behindPrefix(ids([header, 12, 4, 11]), upTo, closing)).toBeNull()
  })

  it('learns a closing from two prompts that differ in one token, and from no others', () => {
    expect([...(closingOf(ids([3, 10, 1, 9]), ids([3, 11, 1, 9])) ?? [])]).toEqual([1, 9])
    expect(closingOf(ids([3, 10, 1]), ids([3, 10, 1]))).toBeNull()
    expect(closingOf(ids([3, 10, 1]), ids([3, 11, 12, 1]))).toBeNull()
    expect(closingOf(ids([4, 10, 1]), ids([3, 11, 1]))).toBeNull()
  })
})
