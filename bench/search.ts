/**
 * The search index at size: passages of 60 to 140 words in a Zipf distribution, built to disk and queried with seven
 * words each, beside SQLite's own full-text index (FTS5, any word suffices) over the same passages in the same run.
 *
 *   node bench/search.ts [--passages 200000] [--queries 300] [--json]
 */
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { readFlags } from './flags.ts'
import { buildCorpus, type Document, readIndex, readManifest } from '../src/envs/search/corpus/index.ts'

export interface SearchBench {
  readonly passages: number
  readonly buildMs: number
  readonly loadMs: number
  readonly indexMb: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly fts5BuildMs: number
  readonly fts5P50Ms: number
  readonly fts5P99Ms: number
}

/** Measures build, load and queries. FTS5 gets a fifth of the queries: it is about a hundred times slower. */
export async function benchSearch(passages: number, queries: number): Promise<SearchBench> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-search-'))
  try {
    const words = vocabulary(60_000)
    const documents = Array.from({ length: passages }, (_, i) => passage(i, words))
    const asked = Array.from({ length: queries }, (_, i) => query(i, words))
    const corpus = join(directory, 'corpus')
    const buildMs = await timed(() => buildCorpus(corpus, documents))
    const manifest = await readManifest(corpus)
    if (manifest === null) throw new Error('the corpus was not built')
    const began = performance.now()
    const index = await readIndex(corpus, manifest)
    const loadMs = performance.now() - began
    for (const text of asked.slice(0, 50)) index.search(text, 5)
    const own = asked.map((text) => spent(() => index.search(text, 5))).toSorted((a, b) => a - b)
    const fts5 = benchFts5(join(directory, 'fts5.sqlite'), documents, asked.slice(0, Math.max(20, queries / 5)))
    const sizes = (await readdir(corpus)).filter((name) => name.endsWith('.segment'))
    const bytes = await Promise.all(sizes.map(async (name) => (await stat(join(corpus, name))).size))
    return {
      passages,
      buildMs,
      loadMs,
      indexMb: bytes.reduce((a, b) => a + b, 0) / 2 ** 20,
      p50Ms: at(own, 0.5),
      p99Ms: at(own, 0.99),
      ...fts5,
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}

function benchFts5(
  path: string,
  documents: readonly Document[],
  queries: readonly string[],
): Pick<SearchBench, 'fts5BuildMs' | 'fts5P50Ms' | 'fts5P99Ms'> {
  const database = new Database(path)
  try {
    database.pragma('journal_mode = OFF')
    database.pragma('synchronous = OFF')
    database.exec("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize = 'porter unicode61')")
    const insert = database.prepare('INSERT INTO passages (rowid, text) VALUES (?, ?)')
    const fts5BuildMs = spent(() =>
      database.transaction(() => documents.forEach((one, i) => insert.run(i, one.text)))(),
    )
    const select = database.prepare('SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT 5')
    const each = queries.map((text) => spent(() => select.all(text.split(' ').join(' OR ')))).toSorted((a, b) => a - b)
    return { fts5BuildMs, fts5P50Ms: at(each, 0.5), fts5P99Ms: at(each, 0.99) }
  } finally {
    database.close()
  }
}

/** A fixed stream of numbers in [0, 1), different per place. */
function noise(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b9
  return () => {
    state = (Math.imul(state ^ (state >>> 16), 0x45d9f3b) + 0x6d2b79f5) | 0
    return (state >>> 0) / 2 ** 32
  }
}

function vocabulary(count: number): readonly string[] {
  const next = noise(7)
  const syllables = 'ba ko ri mu te lan dor vis hep nu sal gri tor ma ve zin'.split(' ')
  return Array.from({ length: count }, (_, i) => {
    const parts = Array.from({ length: 2 + Math.floor(next() * 2) }, () => syllables[Math.floor(next() * 16)] ?? '')
    return `${parts.join('')}${i.toString(36)}`
  })
}

/** A word by Zipf's law with exponent 1, by inverting its continuous distribution. */
function draw(next: () => number, words: readonly string[]): string {
  return words[Math.floor(Math.exp(next() * Math.log(words.length + 1))) - 1] ?? ''
}

function passage(number: number, words: readonly string[]): Document {
  const next = noise(number + 1000)
  const length = 60 + Math.floor(next() * 81)
  const text = Array.from({ length }, () => draw(next, words)).join(' ')
  return { id: `p${number}`, title: `Passage ${number}`, text }
}

function query(number: number, words: readonly string[]): string {
  const next = noise(number + 5_000_000)
  return Array.from({ length: 7 }, () => draw(next, words)).join(' ')
}

function spent(work: () => unknown): number {
  const began = performance.now()
  work()
  return performance.now() - began
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function table(found: SearchBench): string {
  const ms = (value: number) => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value.toFixed(2)} ms`)
  const rows = [
    ['', 'paddock', 'SQLite FTS5', 'ratio'],
    ['build to disk', ms(found.buildMs), ms(found.fts5BuildMs), ratio(found.buildMs, found.fts5BuildMs)],
    ['load', ms(found.loadMs), '', ''],
    ['query p50', ms(found.p50Ms), ms(found.fts5P50Ms), ratio(found.p50Ms, found.fts5P50Ms)],
    ['query p99', ms(found.p99Ms), ms(found.fts5P99Ms), ratio(found.p99Ms, found.fts5P99Ms)],
    ['index', `${found.indexMb.toFixed(0)} MB`, '', ''],
  ]
  const lines = rows.map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(14) : cell.padStart(12))).join(' '))
  return [`${found.passages} passages of 60 to 140 words, queries of seven words, top 5`, ...lines].join('\n')
}

function ratio(own: number, other: number): string {
  return `${(own / other).toFixed(3)}x`
}

if (import.meta.main) {
  const { passages, queries, json } = readFlags(
    { passages: 200_000, queries: 300, json: false },
    { passages: 500, queries: 20 },
  )
  const found = await benchSearch(passages, queries)
  console.log(json ? JSON.stringify(found) : table(found))
}
