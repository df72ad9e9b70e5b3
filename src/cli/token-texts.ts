import { z } from 'zod'
import type { Id } from '../core/index.ts'
import type { EngineAdapter } from '../proxy/index.ts'
import { tokenizerKey } from '../read/index.ts'
import type { SessionLog, Store } from '../trajectory/index.ts'

/** Ids asked of the engine at once, and for one session at most: a cache for people must not become a load. */
const parallel = 4
const maxIdsPerPass = 4000
const quietMs = 1500
const askMs = 10_000

/** Of vLLM (`entrypoints/serve/tokenize`), SGLang (`DetokenizeResponse`), llama.cpp (`tools/server/README.md`). */
const answer = z.union([
  z.object({ prompt: z.string() }).transform(({ prompt }) => prompt),
  z.object({ text: z.string() }).transform(({ text }) => text),
  z.object({ content: z.string() }).transform(({ content }) => content),
])

/**
 * Fills the catalogue's token texts, so that a store is readable when the engine is off. When a session has been quiet
 * for a moment, ids without a text are given to the engine's `/detokenize` one by one. Engines without that route leave the cache empty: ids then print as numbers.
 */
export class TokenTextCache {
  readonly #store: Pick<Store, 'recorder' | 'catalogue'>
  readonly #engine: () => EngineAdapter
  readonly #model: () => string | null
  readonly #waiting = new Set<Id>()
  readonly #abort = new AbortController()
  #timer: NodeJS.Timeout | null = null
  #pass: Promise<void> = Promise.resolve()
  #supported = true

  constructor(parts: {
    readonly store: Pick<Store, 'recorder' | 'catalogue'>
    /** As it is when it is asked. */
    readonly engine: () => EngineAdapter
    readonly model: () => string | null
  }) {
    this.#store = parts.store
    this.#engine = parts.engine
    this.#model = parts.model
  }

  /** A call of this session was recorded. */
  noteCall(sessionId: Id): void {
    if (!this.#supported || !this.#engine().gives.tokenIds) return
    this.#waiting.add(sessionId)
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#start(), quietMs).unref()
  }

  /** Asks for the texts of a session now. */
  async learn(sessionId: Id): Promise<void> {
    if (!this.#supported || !this.#engine().gives.tokenIds) return
    this.#waiting.add(sessionId)
    this.#start()
    await this.#pass
  }

  /** Finishes what is waiting, within `limitMs`. */
  async close(limitMs = 5000): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#start()
    const limit = setTimeout(() => this.#abort.abort(), limitMs)
    await this.#pass
    clearTimeout(limit)
  }

  #start(): void {
    const sessions = [...this.#waiting]
    this.#waiting.clear()
    // A cache that cannot be filled is no failure of what it serves.
    this.#pass = this.#pass.then(async () => {
      for (const session of sessions) await this.#fill(session).catch(() => undefined)
    })
  }

  async #fill(sessionId: Id): Promise<void> {
    const log = await this.#store.recorder.session(sessionId)
    for (const [digest, ids] of idsByFingerprint(log)) {
      const tokenizer = tokenizerKey(await this.#store.catalogue.fingerprint(digest))
      const known = await this.#store.catalogue.tokenTexts(tokenizer, [...ids])
      const missing = [...ids].filter((id) => !known.has(id)).slice(0, maxIdsPerPass)
      const texts = await this.#ask(missing)
      if (texts.size > 0) await this.#store.catalogue.putTokenTexts(tokenizer, texts)
    }
  }

  async #ask(ids: readonly number[]): Promise<Map<number, Uint8Array>> {
    const texts = new Map<number, Uint8Array>()
    const queue = [...ids]
    const worker = async (): Promise<void> => {
      for (let id = queue.pop(); id !== undefined && this.#supported; id = queue.pop()) {
        const text = await this.#detokenize(id)
        // A replacement character stands for a part of a character: its bytes are not known from here.
        if (text !== null && !text.includes('\ufffd')) texts.set(id, new TextEncoder().encode(text))
      }
    }
    await Promise.all(Array.from({ length: parallel }, worker))
    return texts
  }

  async #detokenize(id: number): Promise<string | null> {
    if (this.#abort.signal.aborted) return null
    const { url, apiKey } = this.#engine()
    const response = await fetch(`${url}/detokenize`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      // SGLang leaves the markers of its template out unless it is told.
      body: JSON.stringify({ model: this.#model(), tokens: [id], skip_special_tokens: false }),
      signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(askMs)]),
    })
    if (response.ok) return answer.parse(await response.json())
    await response.body?.cancel()
    if (response.status === 404 || response.status === 405) this.#supported = false
    return null
  }
}

/** The token ids of a session by the engine fingerprint of the call that brought them. */
function idsByFingerprint(log: SessionLog): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>()
  const fingerprints = new Map(log.calls.map(({ intent }) => [intent.id, intent.fingerprint]))
  for (const segment of log.segments) {
    const digest = segment.callId === null ? null : (fingerprints.get(segment.callId) ?? null)
    if (digest === null) continue
    const ids = found.get(digest) ?? new Set<number>()
    for (const id of segment.tokens) ids.add(id)
    found.set(digest, ids)
  }
  return found
}
