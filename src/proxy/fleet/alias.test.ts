import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AliasedAnswer, aliasedError } from './alias.ts'

const events = (model: string, text: string): string =>
  ['a', text, 'z']
    .map((content) => `data: ${JSON.stringify({ id: 'x', model, choices: [{ delta: { content } }] })}\n\n`)
    .join('')

/** The answer as it is told when it comes in pieces that end at these places. */
function told(bytes: Buffer, ends: readonly number[], aliased = new AliasedAnswer('lora-1', 'base')): string {
  const at = [0, ...[...ends].toSorted((a, b) => a - b), bytes.length]
  const pieces = at.slice(1).map((end, index) => aliased.piece(bytes.subarray(at[index], end)))
  return Buffer.concat([...pieces, aliased.end()]).toString()
}

describe('an answer under an adapter', () => {
  it('names the model that it is put on, wherever its pieces end, and what the model says stays as it is', () => {
    const says = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('{"model":"lora-1"}'), fc.constant('"model":"'))
    fc.assert(
      fc.property(says, fc.array(fc.nat(400), { maxLength: 6 }), (text, ends) => {
        const bytes = Buffer.from(events('lora-1', text))
        const within = ends.filter((end) => end < bytes.length)
        expect(told(bytes, within)).toBe(events('base', text))
      }),
    )
  })

  it('of another model is seen as soon as it says so', () => {
    const aliased = new AliasedAnswer('lora-1', 'base')
    told(Buffer.from(events('lora-2', 'lora-1')), [20], aliased)
    expect(aliased.foreign).toBe('lora-2')
  })

  it('that is an error is told without its name', () => {
    const said = Buffer.from('{"error":{"message":"The model `lora-1` and xlora-1, lora-12."}}')
    expect(aliasedError(said, 'lora-1', 'base').toString()).toContain('The model `base` and xlora-1, lora-12.')
  })
})
