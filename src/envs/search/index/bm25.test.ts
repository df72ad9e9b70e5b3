import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { termsOf } from '../analysis/index.ts'
import {
  Bm25Index,
  decodeLength,
  defaultBm25,
  encodeLength,
  readSegment,
  type Segment,
  SegmentBuilder,
  writeSegment,
} from './index.ts'

/** BM25 as the formula stands in print: no index, every passage scored for every query. */
function reference(texts: readonly string[], query: string, topk: number, { k1, b } = defaultBm25) {
  const passages = texts.map((text) => termsOf(text))
  const average = passages.reduce((sum, terms) => sum + terms.length, 0) / passages.length
  const asked = termsOf(query)
  const scores = passages.map((terms) => {
    const length = decodeLength(encodeLength(terms.length))
    let score = 0
    for (const term of new Set(asked)) {
      const inQuery = asked.filter((other) => other === term).length
      const holders = passages.filter((other) => other.includes(term)).length
      const idf = Math.log(1 + (passages.length - holders + 0.5) / (holders + 0.5))
      const tf = terms.filter((other) => other === term).length
      if (tf > 0) score += (inQuery * idf * tf) / (tf + k1 * (1 - b + (b * length) / average))
    }
    return Math.fround(score)
  })
  return scores
    .map((score, document) => ({ document, score }))
    .filter(({ score }) => score > 0)
    .toSorted((a, c) => c.score - a.score || a.document - c.document)
    .slice(0, topk)
}

function segmentOf(texts: readonly string[]): Segment {
  const builder = new SegmentBuilder()
  for (const text of texts) builder.add(text)
  return builder.finish()
}

/** Cuts the texts into segments at the given places. */
function indexOf(texts: readonly string[], cuts: readonly number[] = []): Bm25Index {
  const edges = [0, ...cuts.map((cut) => cut % (texts.length + 1)).toSorted((a, b) => a - b), texts.length]
  return new Bm25Index(edges.slice(1).map((edge, i) => segmentOf(texts.slice(edges[i], edge))))
}

const vocabulary = 'river rivers town founder founded the of bridge mill north school teacher taught 1871 x'.split(' ')
const text = fc.array(fc.constantFrom(...vocabulary), { maxLength: 40 }).map((words) => words.join(' '))

describe('BM25', () => {
  test('ranks as the plain formula does, scores and ties included, however the corpus is cut into segments', () => {
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 40 }),
        text,
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.nat(), { maxLength: 3 }),
        (texts, query, topk, cuts) => {
          expect(indexOf(texts, cuts).search(query, topk)).toEqual(reference(texts, query, topk))
        },
      ),
      { numRuns: 250, seed: 21 },
    )
  })

  test('takes other parameters per query', () => {
    const texts = ['mill mill mill bridge', 'mill', 'bridge town river north school teacher mill mill']
    const index = indexOf(texts)
    for (const parameters of [
      { k1: 1.2, b: 0.75 },
      { k1: 0, b: 0 },
      { k1: 3, b: 1 },
    ]) {
      expect(index.search('mill bridge', 3, parameters)).toEqual(reference(texts, 'mill bridge', 3, parameters))
    }
  })

  test('ranks equal passages by their place', () => {
    const index = indexOf(
      Array.from({ length: 9 }, () => 'old mill'),
      [4],
    )
    expect(index.search('mill', 4).map(({ document }) => document)).toEqual([0, 1, 2, 3])
  })

  test('finds nothing in nothing, for no words, and for unknown words', () => {
    expect(new Bm25Index([]).search('mill', 5)).toEqual([])
    expect(indexOf(['']).search('mill', 5)).toEqual([])
    expect(indexOf(['old mill']).search('the of', 5)).toEqual([])
    expect(indexOf(['old mill']).search('zebra', 5)).toEqual([])
  })
})

// SmallFloat.intToByte4 of Lucene: exact below 40, then four significant bits.
test.each([
  [0, 0, 0],
  [23, 23, 23],
  [24, 24, 24],
  [39, 39, 39],
  [41, 40, 40],
  [100, 57, 96],
  [1000, 87, 984],
  [2 ** 31 - 1, 255, 2013265944],
])('a length of %i is stored as %i and read as %i', (length, byte, read) => {
  expect(encodeLength(length)).toBe(byte)
  expect(decodeLength(byte)).toBe(read)
})

describe('a segment on disk', () => {
  const directory = tempDir()

  test('is read back as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 20 }), async (texts) => {
        const segment = segmentOf([...texts, 'naïve Łódź'])
        const path = join(directory, 'a.segment')
        await writeSegment(path, segment)
        const read = await readSegment(path)
        expect({ ...read, terms: [...read.terms] }).toEqual({ ...segment, terms: [...segment.terms] })
      }),
      { numRuns: 30, seed: 22 },
    )
  })

  test('that is damaged is refused', async () => {
    const path = join(directory, 'b.segment')
    await writeSegment(path, segmentOf(['old mill by the river']))
    const whole = await readFile(path)
    for (const bytes of [whole.subarray(0, -8), Buffer.from('no segment at all'), Buffer.alloc(0), whole.with(0, 0)]) {
      await writeFile(path, bytes)
      await expect(readSegment(path)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    }
  })
})
