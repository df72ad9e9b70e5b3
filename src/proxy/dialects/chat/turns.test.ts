import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readChatRequest } from './request.ts'
import { turnDigest, Turns } from './turns.ts'

const seed = 20261122
const message = fc.oneof(
  fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.constantFrom('', 'a', 'b', 'é', ']', '"],') }),
  fc.constantFrom(1, 12, 'x'),
)
const messages = fc.array(message, { minLength: 1, maxLength: 5 })
/** How a list is written: by one who writes it each time alike, or with white space somewhere. */
const space = fc.constantFrom('', ' ', '\n\t')

function read(list: readonly unknown[], blank: string) {
  const text = list.map((one) => JSON.stringify(one)).join(`${blank},${blank}`)
  return readChatRequest(Buffer.from(`{"model":"m","messages":[${blank}${text}${blank}],"n":1}`), {}).turns
}

describe('digests taken over from an earlier request', () => {
  it('are those that the messages have by themselves', () => {
    let followed = 0
    fc.assert(
      fc.property(messages, messages, space, space, (first, second, blank, otherBlank) => {
        const known = read(first, blank).known()
        expect.assert(known !== null)
        for (const [list, written] of [
          [[...first, ...second], blank],
          [[...first, ...second], otherBlank],
          [second, blank],
          [first, blank],
        ] as const) {
          const turns = read(list, written)
          if (turns.follow(known)) followed += 1
          const plain = new Turns(list)
          expect(turns.each).toEqual(plain.each)
          expect(turns.chain).toEqual(plain.chain)
          expect(turns.known()).toEqual(read(list, written).known())
        }
      }),
      { seed, numRuns: 500 },
    )
    expect(followed).toBeGreaterThan(1000)
  })

  it('are not taken over where a message goes on or another one stands there', () => {
    const known = read([1], '').known()
    expect.assert(known !== null)
    expect(read([12], '').follow(known)).toBe(false)
    expect(read([2, 1], '').follow(known)).toBe(false)
    expect(read([1, 2], '').follow(known)).toBe(true)
  })

  it('are of the list that counts where a body has two', () => {
    const known = readChatRequest(Buffer.from('{"messages":[1,2],"messages":[3]}'), {}).turns.known()
    expect.assert(known !== null)
    expect(read([1, 2, 4], '').follow(known)).toBe(false)
    const turns = read([3, 4], '')
    expect(turns.follow(known)).toBe(true)
    expect(turns.each).toEqual(new Turns([3, 4]).each)
  })
})

it('a call is the same with its arguments as a text and as an object, and another one with other arguments', () => {
  const calling = (args: unknown) =>
    turnDigest({ role: 'assistant', content: null, tool_calls: [{ function: { name: 'shell', arguments: args } }] })
  const said = calling('{"command": "ls", "depth": 1.0}')
  expect(calling({ depth: 1, command: 'ls' })).toBe(said)
  expect(calling({ depth: 2, command: 'ls' })).not.toBe(said)
  expect(calling(undefined)).toBe(calling(''))
})
