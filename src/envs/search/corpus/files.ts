import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import { analyserVersion } from '../analysis/index.ts'
import { Bm25Index, readSegment, SegmentBuilder, writeSegment } from '../index/index.ts'
import type { Document } from './document.ts'

const manifestSchema = z.object({
  format: z.literal(1),
  analyser: z.string(),
  /** SHA-256 over id, title and text of every passage, each ended by a zero byte. */
  digest: z.string(),
  documents: z.int(),
  segments: z.array(z.string()),
})

/** What a built corpus says of itself. */
export type CorpusManifest = z.infer<typeof manifestSchema>

/**
 * Builds a corpus into `directory`: `documents.sqlite`, `*.segment`, `corpus.json`. It is made beside it and moved there
 * when it is whole, so that a corpus that exists is complete; of two builders at once the first wins. Throws
 * `TASK_INVALID` for a repeated id.
 */
export async function buildCorpus(
  directory: string,
  documents: Iterable<Document> | AsyncIterable<Document>,
): Promise<void> {
  await mkdir(dirname(directory), { recursive: true })
  const workplace = await mkdtemp(`${directory}.building-`)
  try {
    const manifest = await fill(workplace, documents)
    await writeFile(join(workplace, 'corpus.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    await rename(workplace, directory).catch(async (error: unknown) => {
      if ((await readManifest(directory)) === null) throw error
    })
  } finally {
    await rm(workplace, { recursive: true, force: true })
  }
}

/** The manifest of a built corpus; null when there is none, or one of another version. */
export async function readManifest(directory: string): Promise<CorpusManifest | null> {
  const text = await readFile(join(directory, 'corpus.json'), 'utf8').catch(() => null)
  if (text === null) return null
  const parsed = manifestSchema.safeParse(JSON.parse(text))
  return parsed.success && parsed.data.analyser === analyserVersion ? parsed.data : null
}

/** Reads the index of a built corpus. Throws `STORE_CORRUPT`. */
export async function readIndex(directory: string, manifest: CorpusManifest): Promise<Bm25Index> {
  return new Bm25Index(await Promise.all(manifest.segments.map((name) => readSegment(join(directory, name)))))
}

async function fill(
  directory: string,
  documents: Iterable<Document> | AsyncIterable<Document>,
): Promise<CorpusManifest> {
  const database = new Database(join(directory, 'documents.sqlite'))
  try {
    // Nothing here is worth a sync: what is not finished is thrown away.
    database.pragma('journal_mode = OFF')
    database.pragma('synchronous = OFF')
    database.exec(
      'CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL)',
    )
    const insert = database.prepare('INSERT INTO documents VALUES (?, ?, ?, ?)')
    const hash = createHash('sha256')
    const segments: string[] = []
    let builder = new SegmentBuilder()
    const flush = async () => {
      const name = `${String(segments.length).padStart(4, '0')}.segment`
      await writeSegment(join(directory, name), builder.finish())
      segments.push(name)
      builder = new SegmentBuilder()
    }
    let count = 0
    database.exec('BEGIN')
    for await (const { id, title, text } of documents) {
      insert.run(count, id, title, text)
      hash.update(`${id}\0${title}\0${text}\0`)
      builder.add(`${title}\n${text}`)
      count += 1
      if (builder.full) await flush()
    }
    if (builder.size > 0) await flush()
    database.exec('COMMIT')
    nameIds(database)
    return { format: 1, analyser: analyserVersion, digest: hash.digest('hex'), documents: count, segments }
  } finally {
    database.close()
  }
}

function nameIds(database: Database.Database): void {
  try {
    database.exec('CREATE UNIQUE INDEX documents_by_id ON documents (id)')
  } catch (cause) {
    throw new PaddockError('TASK_INVALID', 'Two passages of the corpus have the same id', {
      cause,
      fix: 'Give every passage an id of its own.',
    })
  }
}
