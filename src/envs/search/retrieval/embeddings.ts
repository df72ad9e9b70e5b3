import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'

/** A server of embeddings, as `search.toml` names it. */
export interface EmbeddingsServer {
  /** Up to and with `/v1`. */
  readonly url: string
  readonly model: string
  readonly apiKey: string | null
}

/** OpenAI's `POST /v1/embeddings`, as vLLM, SGLang, TEI and llama.cpp serve it. */
const reply = z.looseObject({
  data: z.array(z.looseObject({ index: z.int().min(0), embedding: z.array(z.number()).min(1) })),
})

/**
 * The vectors of texts, in their order, each of length 1. Throws `EMBEDDINGS_FAILED` for a server that does not answer,
 * refuses, or gives something else than one vector of one size per text, and the signal's reason.
 */
export async function embed(
  server: EmbeddingsServer,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const body = await ask(server, texts, signal)
  const parsed = reply.safeParse(body)
  if (!parsed.success) throw failed(server, `its answer does not fit: ${z.prettifyError(parsed.error)}`)
  const found = parsed.data.data.toSorted((a, b) => a.index - b.index)
  const [first] = found
  const fits =
    found.length === texts.length &&
    found.every(({ index, embedding }, i) => index === i && embedding.length === first?.embedding.length)
  if (!fits) throw failed(server, `it gave ${found.length} vectors for ${texts.length} texts, or of several sizes`)
  return found.map(({ embedding }) => toUnit(embedding))
}

async function ask({ url, model, apiKey }: EmbeddingsServer, input: readonly string[], signal: AbortSignal) {
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}/embeddings`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify({ model, input, encoding_format: 'float' }),
      signal,
    })
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 300)}`)
    return await response.json()
  } catch (cause) {
    if (signal.aborted) throw signal.reason
    throw failed({ url, model }, String(cause), cause)
  }
}

function toUnit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values)
  return Float32Array.from(values, (value) => (length === 0 ? 0 : value / length))
}

function failed({ url, model }: Pick<EmbeddingsServer, 'url' | 'model'>, what: string, cause?: unknown): PaddockError {
  return new PaddockError('EMBEDDINGS_FAILED', `The embeddings of ${model} at ${url} failed: ${what}`, { cause })
}
