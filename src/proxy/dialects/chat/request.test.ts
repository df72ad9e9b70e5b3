import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readChatRequest } from './request.ts'

const seed = 20261122
const ignored = ['stream', 'stream_options', 'metadata', 'user', 'cache_control', 'prompt_cache_key']

/** What a retry repeats, written down in the plainest way. */
function plainDigest(members: readonly (readonly [string, unknown])[]): string {
  const digest = createHash('sha256')
  const last = new Map(members)
  for (const key of [...last.keys()].sort()) {
    if (ignored.includes(key)) continue
    digest.update(`${key}\u0000${JSON.stringify(unmarked(last.get(key)))}\u0000`)
  }
  return digest.digest('hex')
}

function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control')
  return Object.fromEntries(kept.map(([key, member]) => [key, unmarked(member)]))
}

const value = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.integer(),
  fc.constant({ type: 'text', cache_control: { type: 'ephemeral' }, text: 'x' }),
  fc.array(fc.record({ b: fc.string(), a: fc.boolean() })),
)
const key = fc.oneof(
  fc.constantFrom('nonce', 'z', 'a', 'e\u0301', '"', '\ud800', 'user', 'metadata', 'cache_control', 'constructor'),
  fc.string({ unit: 'grapheme', maxLength: 4 }).filter((name) => !['model', 'stream', 'n', '__proto__'].includes(name)),
)
const asked: readonly [string, unknown] = ['messages', [{ role: 'user', content: 'x' }]]
const body = fc
  .tuple(fc.array(fc.tuple(key, value), { maxLength: 40 }), fc.nat())
  .map(([members, at]): readonly (readonly [string, unknown])[] => {
    const place = at % (members.length + 1)
    return [...members.slice(0, place), asked, ...members.slice(place)]
  })

function textOf(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`).join(',')}}`
}

describe('what a retry repeats', () => {
  it('is the last value of each member by name, without what clients vary', () => {
    fc.assert(
      fc.property(body, (members) => {
        const read = readChatRequest(Buffer.from(textOf(members)), {})
        expect(read.digest).toBe(plainDigest(members))
      }),
      { seed, numRuns: 1000 },
    )
  })
})

describe('a chat request', () => {
  it.each([
    [256, false],
    [257, true],
  ])('nested %i deep is refused: %s', (depth, refused) => {
    const nested = `${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}`
    const read = () => readChatRequest(Buffer.from(`{"messages":[{"role":"user"}],"x":${nested}}`), {})
    if (refused) expect(read).toThrow('nested more than 256 deep')
    else expect(read).not.toThrow()
  })
})
