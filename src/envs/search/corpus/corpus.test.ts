import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { HitCache } from './cache.ts'
import { buildCorpus, openCorpus, readIndex, readManifest } from './index.ts'

const directory = tempDir()

const generated = { kind: 'generated', version: 1, seed: 3, passages: 400 } as const

describe('a corpus', () => {
  test('is built once by several openers at once, and leaves nothing else behind', async () => {
    const root = join(directory, 'race')
    const opened = await Promise.all(Array.from({ length: 3 }, () => openCorpus(root, generated)))
    expect(new Set(opened.map(({ digest }) => digest)).size).toBe(1)
    const answers = await Promise.all(opened.map((corpus) => corpus.search('town river', { topk: 4 })))
    expect(answers[0]).toHaveLength(4)
    expect(answers).toEqual([answers[0], answers[0], answers[0]])
    for (const corpus of opened) await corpus[Symbol.asyncDispose]()
    expect(await readdir(root)).toHaveLength(1)
  })

  test('that could not be built leaves nothing behind and is told by its error', async () => {
    const root = join(directory, 'broken')
    const path = join(directory, 'broken.jsonl')
    await writeFile(path, '{"id": "1", "contents": "a"}\nnonsense\n')
    await expect(openCorpus(root, { kind: 'jsonl', path })).rejects.toMatchObject({ code: 'TASK_INVALID' })
    expect(await readdir(root)).toEqual([])
  })

  test('larger than a segment is ranked over all its segments', async () => {
    const place = join(directory, 'large')
    const size = 66_000
    await buildCorpus(
      place,
      Array.from({ length: size }, (_, i) => ({
        id: `p${i}`,
        title: '',
        text: i % 1000 === 999 ? 'rare mill' : 'mill',
      })),
    )
    const manifest = await readManifest(place)
    expect(manifest).toMatchObject({ documents: size, segments: { length: 2 } })
    if (manifest === null) return
    const index = await readIndex(place, manifest)
    const ranking = index.search('rare', 100)
    expect(ranking.map(({ document }) => document)).toEqual(Array.from({ length: 66 }, (_, i) => i * 1000 + 999))
    expect(new Set(ranking.map(({ score }) => score)).size).toBe(1)
  })

  test('that is closed says so', async () => {
    const corpus = await openCorpus(join(directory, 'race'), generated)
    await corpus[Symbol.asyncDispose]()
    await expect(corpus.search('town', { topk: 1 })).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe('the cache', () => {
  const hits = (length: number) => [{ id: '1', title: '', text: 'x'.repeat(length), score: 1 }]

  test('keeps what was used last, within both limits', async () => {
    const cache = new HitCache({ entries: 3, units: 100 })
    const asked: string[] = []
    const get = (key: string, length = 10) =>
      cache.get(key, async () => {
        asked.push(key)
        return hits(length)
      })
    for (const key of ['a', 'b', 'c', 'a', 'd', 'a', 'b']) await get(key)
    expect(asked).toEqual(['a', 'b', 'c', 'd', 'b'])
    await get('long', 95)
    await get('b')
    expect(asked.slice(5)).toEqual(['long', 'b'])
    expect([cache.hits, cache.misses]).toEqual([2, 7])
  })

  test('asks again for what failed', async () => {
    const cache = new HitCache({ entries: 3, units: 100 })
    await expect(cache.get('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await cache.get('a', async () => hits(1))).toHaveLength(1)
  })
})
