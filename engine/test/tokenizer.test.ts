import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { Tokenizer } from 'tokenizers'
import { describe, expect, it } from 'vitest'
import { loadProfile } from '../src/profiles.ts'
import { IncrementalText } from '../src/tokenizer/incremental.ts'
import { splitTokens } from '../src/faults/non-canonical.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 60 })

describe.each(['scripted-hermes', 'scripted-llama'])('vocabulary of %s', (model) => {
  const { vocabulary } = loadProfile(model)

  it('round-trips any text, by whole and by token', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (given) => {
        const ids = await vocabulary.encode(given)
        expect(vocabulary.decode(ids)).toBe(given)
        const incremental = new IncrementalText(vocabulary, { skipSpecial: false })
        expect([...ids].map((id) => incremental.push(id)).join('') + incremental.end()).toBe(given)
      }),
    )
  })

  it('gives the ids of the library itself, with added tokens anywhere in the text', async () => {
    const file = fileURLToPath(new URL(`../tokenizers/${vocabulary.name}.json`, import.meta.url))
    const library = Tokenizer.fromFile(file)
    const added = ['<|im_end|>', '<think>', '</think>', '<|eot_id|>', '<|start_header_id|>', '<|im_start|>']
    const mixed = fc.array(fc.oneof(text, fc.constantFrom(...added, '\n', '\n\n', ' ', '<', '|>')), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(mixed, async (parts) => {
        const given = parts.join('')
        const truth = await library.encode(given, null, { addSpecialTokens: false })
        expect([...(await vocabulary.encode(given))]).toEqual(truth.getIds())
      }),
    )
  })

  it('joins common words into few tokens: it is a trained BPE, not bytes', async () => {
    const given = 'Let me check the file first. grep -rn "error" /var/log | sort'
    expect((await vocabulary.encode(given)).length).toBeLessThan(given.length / 2)
  })

  it('splits characters over tokens and never shows half of one', async () => {
    const ids = await vocabulary.encode('日本語😀')
    const incremental = new IncrementalText(vocabulary, { skipSpecial: false })
    const parts = [...ids].map((id) => incremental.push(id))
    expect(parts.length).toBeGreaterThan(parts.filter((part) => part !== '').length)
    expect(parts.join('')).toBe('日本語😀')
  })

  it('has another tokenization of the same bytes for texts with longer tokens', async () => {
    const ids = await vocabulary.encode('Let me count the users — façade.')
    const other = splitTokens(ids, vocabulary)
    expect(other.length).toBeGreaterThan(ids.length)
    expect(vocabulary.decode(other)).toBe(vocabulary.decode(ids))
  })

  it('hides control tokens where asked and reads them as single ids', async () => {
    const marker = model === 'scripted-llama' ? '<|eot_id|>' : '<|im_end|>'
    const ids = await vocabulary.encode(`a${marker}b`)
    expect([...ids]).toContain(vocabulary.idOf(marker))
    expect(vocabulary.decode(ids, { skipSpecial: true })).toBe('ab')
  })

  it('is small enough to be committed', () => {
    const path = fileURLToPath(new URL(`../tokenizers/${vocabulary.name}.json`, import.meta.url))
    expect(statSync(path).size).toBeLessThan(1_000_000)
  })
})
