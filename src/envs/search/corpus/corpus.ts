import { Worker } from 'node:worker_threads'
import { PaddockError } from '../../../core/index.ts'
import { type Bm25Parameters, defaultBm25 } from '../index/index.ts'
import { HitCache } from './cache.ts'
import type { CorpusSource, Document } from './document.ts'
import {
  type CorpusFacts,
  type CorpusReply,
  type CorpusRequest,
  fromFault,
  type Hit,
  type NearestQuestion,
} from './wire.ts'

/** A built corpus that answers queries; one thread and one cache, shared by whoever asks in this process. */
export interface Corpus extends AsyncDisposable, CorpusFacts {
  /**
   * The best passages of one query, best first. Equal queries are answered from the cache, also while the first is under
   * way. Throws `STORE_CORRUPT`, `STORE_FAILED`.
   */
  search(query: string, o: SearchOptions): Promise<readonly Hit[]>
  /** One passage by its id; null when there is none. */
  get(id: string): Promise<Document | null>
  /** Passages by place, at most `count`. */
  range(from: number, count: number): Promise<readonly Document[]>
  /** The nearest passages of a vector, best first, score the cosine. Throws `STORE_CORRUPT` for a file of another size. */
  nearest(question: NearestQuestion): Promise<readonly Hit[]>
  /** What the cache did so far. */
  readonly cache: { readonly hits: number; readonly misses: number }
}

export interface SearchOptions {
  readonly topk: number
  readonly parameters?: Bm25Parameters
}

interface Waiting {
  readonly resolve: (reply: CorpusReply) => void
  readonly reject: (error: unknown) => void
}

/**
 * Opens a corpus below the directory `root`, building it when it is not there. The thread does not keep the process
 * alive. Throws `TASK_INVALID` for passages that cannot be read, `STORE_CORRUPT` for a damaged corpus.
 */
export async function openCorpus(root: string, source: CorpusSource): Promise<Corpus> {
  const thread = new CorpusThread(root, source)
  const facts = await thread.ready
  const cache = new HitCache({ entries: 10_000, units: 32 * 2 ** 20 })
  return {
    ...facts,
    cache,
    search: (query, { topk, parameters = defaultBm25 }) =>
      cache.get(`${topk} ${parameters.k1} ${parameters.b} ${query}`, async () => {
        const reply = await thread.ask({ op: 'search', query, topk, parameters })
        return 'hits' in reply ? reply.hits : []
      }),
    get: async (document) => {
      const reply = await thread.ask({ op: 'get', document })
      return 'document' in reply ? reply.document : null
    },
    range: async (from, count) => {
      const reply = await thread.ask({ op: 'range', from, count })
      return 'documents' in reply ? reply.documents : []
    },
    nearest: async (question) => {
      const reply = await thread.ask({ op: 'nearest', ...question })
      return 'hits' in reply ? reply.hits : []
    },
    [Symbol.asyncDispose]: () => thread.end(),
  }
}

type Question = CorpusRequest extends infer R ? (R extends { readonly id: number } ? Omit<R, 'id'> : never) : never

/** The main thread's end: requests in, promises out. */
class CorpusThread {
  readonly ready: Promise<CorpusFacts>
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #next = 0
  #ended: PaddockError | null = null

  constructor(root: string, source: CorpusSource) {
    const file = import.meta.url.endsWith('.ts') ? './corpus-worker.ts' : './corpus-worker.js'
    // Flags of the parent (a test runner's loaders) mean nothing to this thread.
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData: { root, source }, execArgv: [] })
    const opened = Promise.withResolvers<CorpusFacts>()
    this.ready = opened.promise
    this.#worker.on('message', (reply: CorpusReply) => {
      if ('ready' in reply) {
        this.#worker.unref()
        opened.resolve(reply.ready)
      } else if (reply.id !== null) this.#settle(reply.id, reply)
      else {
        void this.#worker.terminate()
        opened.reject(fromFault(reply.fault))
      }
    })
    const fail = (cause: unknown) => {
      this.#ended ??= new PaddockError('STORE_FAILED', `The thread of a corpus ended: ${String(cause)}`, { cause })
      opened.reject(this.#ended)
      for (const { reject } of this.#waiting.values()) reject(this.#ended)
      this.#waiting.clear()
    }
    this.#worker.on('error', fail)
    this.#worker.on('exit', fail)
  }

  ask(question: Question): Promise<CorpusReply> {
    if (this.#ended !== null) return Promise.reject(this.#ended)
    const id = this.#next
    this.#next += 1
    const { promise, resolve, reject } = Promise.withResolvers<CorpusReply>()
    this.#waiting.set(id, { resolve, reject })
    // Whoever waits for an answer waits with the process.
    this.#worker.ref()
    this.#worker.postMessage({ id, ...question })
    return promise
  }

  async end(): Promise<void> {
    this.#ended ??= new PaddockError('STORE_CLOSED', 'The corpus is closed')
    await this.#worker.terminate()
  }

  #settle(id: number, reply: CorpusReply): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#worker.unref()
    if ('fault' in reply) waiting?.reject(fromFault(reply.fault))
    else waiting?.resolve(reply)
  }
}
