import { createHash } from 'node:crypto'
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Corpus, Hit } from '../corpus/index.ts'
import { embed, type EmbeddingsServer } from './embeddings.ts'

/** How a corpus is embedded; part of the task, so that another model is another task. */
export interface DenseOptions {
  readonly model: string
  /** Put before a query, and before a passage (`query: ` and `passage: ` of the E5 models). */
  readonly queryPrefix: string
  readonly passagePrefix: string
}

/** Nearest passages by the meaning that an embedding model sees. */
export interface DenseIndex {
  /** The passages with the largest cosine to the query, best first; equal ones by their place in the corpus. */
  search(query: string, topk: number, signal: AbortSignal): Promise<readonly Hit[]>
}

const batchSize = 64
const manifestSchema = z.object({ dimensions: z.int().min(1), documents: z.int() })

/**
 * The vectors of a corpus, made at first use and kept in its directory. The search is exact: every passage is looked at,
 * in the corpus's own thread. Throws `EMBEDDINGS_FAILED` and the signal's reason; what was made half is thrown away.
 */
export async function openDense(
  corpus: Corpus,
  server: EmbeddingsServer,
  o: DenseOptions,
  signal: AbortSignal,
): Promise<DenseIndex> {
  const name = createHash('sha256')
    .update(JSON.stringify([o.model, o.passagePrefix]))
    .digest('hex')
    .slice(0, 16)
  const path = join(corpus.directory, `dense-${name}`)
  const known = await readManifest(path, corpus)
  const { dimensions } = known ?? (await build(path, corpus, server, o, signal))
  return {
    search: async (query, topk, abort) => {
      const [vector] = await embed(server, [`${o.queryPrefix}${query}`], abort)
      if (vector === undefined) return []
      return corpus.nearest({ path: `${path}.f32`, dimensions, vector, topk })
    },
  }
}

async function readManifest(path: string, { documents }: Corpus) {
  const text = await readFile(`${path}.json`, 'utf8').catch(() => null)
  const parsed = text === null ? null : manifestSchema.safeParse(JSON.parse(text))
  return parsed?.success === true && parsed.data.documents === documents ? parsed.data : null
}

async function build(path: string, corpus: Corpus, server: EmbeddingsServer, o: DenseOptions, signal: AbortSignal) {
  const workplace = `${path}.building-${process.pid}`
  let dimensions = 0
  try {
    await using file = await open(workplace, 'w')
    for (let from = 0; from < corpus.documents; from += batchSize) {
      const passages = await corpus.range(from, batchSize)
      const texts = passages.map(({ title, text }) => `${o.passagePrefix}${title}\n${text}`)
      const vectors = await embed(server, texts, signal)
      dimensions = vectors[0]?.length ?? dimensions
      for (const vector of vectors) await file.write(vector)
    }
    await file.close()
    await rename(workplace, `${path}.f32`)
    const manifest = { dimensions, documents: corpus.documents }
    // Written last: vectors without it are made again.
    await writeFile(`${path}.json`, `${JSON.stringify(manifest)}\n`)
    return manifest
  } finally {
    await rm(workplace, { force: true })
  }
}
