import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { PaddockError } from '../../../core/index.ts'
import { analyserVersion } from '../analysis/index.ts'
import { generatePassages } from '../generate/index.ts'
import type { Ranked } from '../index/index.ts'
import { buildCorpus, type CorpusManifest, readIndex, readManifest } from './files.ts'
import type { CorpusSource } from './document.ts'
import { openDocuments } from './documents.ts'
import { readContexts } from './contexts.ts'
import { readJsonLines } from './jsonl.ts'
import { VectorFiles } from './vectors.ts'
import { type CorpusOrder, type CorpusReply, type CorpusRequest, toFault } from './wire.ts'

/**
 * The thread of one corpus: builds it at first use, then answers queries. Off the main thread, because building takes
 * seconds and a query milliseconds, which the streams of the proxy must not wait for.
 */
async function serve({ root, source }: CorpusOrder, send: (reply: CorpusReply) => void): Promise<void> {
  const directory = join(root, `${await nameOf(source)}-${analyserVersion}`)
  const manifest = await findOrBuild(directory, source)
  const index = await readIndex(directory, manifest)
  const documents = openDocuments(directory)
  const vectors = new VectorFiles()
  parentPort?.on('message', (request: CorpusRequest) => {
    try {
      const { id } = request
      const hitsOf = (ranking: readonly Ranked[]) =>
        ranking.map(({ document, score }) => ({ ...documents.at(document), score }))
      switch (request.op) {
        case 'get':
          return send({ id, document: documents.get(request.document) })
        case 'range': {
          const count = Math.max(0, Math.min(request.count, manifest.documents - request.from))
          return send({ id, documents: Array.from({ length: count }, (_, i) => documents.at(request.from + i)) })
        }
        case 'nearest':
          return send({ id, hits: hitsOf(vectors.nearest(request, manifest.documents)) })
        case 'search':
          return send({ id, hits: hitsOf(index.search(request.query, request.topk, request.parameters)) })
      }
    } catch (error) {
      send({ id: request.id, fault: toFault(error) })
    }
  })
  send({ ready: { directory, digest: manifest.digest, documents: manifest.documents } })
}

async function findOrBuild(directory: string, source: CorpusSource): Promise<CorpusManifest> {
  const found = await readManifest(directory)
  if (found !== null) return found
  await buildCorpus(directory, passagesOf(source))
  const built = await readManifest(directory)
  if (built === null) throw new PaddockError('STORE_CORRUPT', `The corpus in ${directory} vanished while it was opened`)
  return built
}

function passagesOf(source: CorpusSource) {
  switch (source.kind) {
    case 'generated':
      return generatePassages(source)
    case 'jsonl':
      return readJsonLines(source.path)
    case 'contexts':
      return readContexts(source.path, source.format)
  }
}

/** A file is known by its content, so that a changed one is another corpus. */
async function nameOf(source: CorpusSource): Promise<string> {
  if (source.kind === 'generated') return `generated-${source.version}-${source.seed}-${source.passages}`
  const hash = createHash('sha256')
  try {
    for await (const chunk of createReadStream(source.path)) hash.update(chunk)
  } catch (cause) {
    throw new PaddockError('TASK_INVALID', `The corpus ${source.path} cannot be read`, {
      cause,
      data: { file: source.path },
      fix: 'Check corpus.path in search.toml.',
    })
  }
  return `${source.kind === 'jsonl' ? 'jsonl' : source.format}-${hash.digest('hex').slice(0, 32)}`
}

const send = (reply: CorpusReply) => parentPort?.postMessage(reply)
await serve(workerData, send).catch((error: unknown) => send({ id: null, fault: toFault(error) }))
