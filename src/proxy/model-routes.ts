import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { PaddockError } from '../core/index.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { askEngine } from './engines/http.ts'
import { modelCards } from './engines/models.ts'
import type { LiveSession } from './session/live-session.ts'
import type { LooseObject } from './session/sampling.ts'

/** A model that a client asks for, or the list of them. */
export interface ModelRoute {
  readonly path: string
  /** Null: all. */
  readonly model: string | null
}

/** In whose shape models are told: clients of all three ask under the same paths. */
export type ModelShape = 'openai' | 'anthropic' | 'gemini'

export function modelShape(headers: IncomingHttpHeaders, path: string): ModelShape {
  if (!path.startsWith('/v1/') || 'x-goog-api-key' in headers || 'x-goog-api-client' in headers) return 'gemini'
  return 'anthropic-version' in headers ? 'anthropic' : 'openai'
}

/**
 * `GET /v1/models` and `/v1/models/{id}` as OpenAI, Anthropic and Gemini tell them, `/v1beta/models` as Gemini does. Where the
 * session has a model of its own, every name that a client may write stands for it, as it does on the generation
 * routes. `hidesAdapters`: what has a parent is an adapter, and not told of. Throws `MODEL_UNKNOWN`, `ENGINE_UNREACHABLE`, `ENGINE_ERROR`.
 */
export async function serveModels(
  session: LiveSession,
  {
    model,
    shape,
    hidesAdapters,
  }: { readonly model: string | null; readonly shape: ModelShape; readonly hidesAdapters: boolean },
  engine: EngineAdapter,
  response: ServerResponse,
): Promise<void> {
  const listed = await askEngine(engine.url, '/v1/models', engine.apiKey)
  if (listed === null) throw new PaddockError('ENGINE_ERROR', `The engine ${engine.name} lists no models.`)
  const cards = modelCards(listed).filter(({ parent }) => !hidesAdapters || typeof parent !== 'string')
  const told =
    model === null
      ? listAs(shape, cards)
      : cardAs(shape, { ...cardNamed(cards, session.record.policy.model, model), id: model })
  const body = Buffer.from(JSON.stringify(told))
  if (response.destroyed) return
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}

function cardNamed(cards: readonly LooseObject[], own: string | null, model: string): LooseObject {
  const found = cards.find(({ id }) => id === model) ?? cards.find(({ id }) => own !== null && id === own)
  if (found !== undefined) return found
  throw new PaddockError('MODEL_UNKNOWN', `The model ${model.slice(0, 200)} does not exist.`, {
    data: { model },
    fix: `Name one of: ${cards.map(({ id }) => String(id)).join(', ')}.`,
  })
}

function listAs(shape: ModelShape, cards: readonly LooseObject[]): LooseObject {
  const told = cards.map((card) => cardAs(shape, card))
  switch (shape) {
    case 'openai':
      return { object: 'list', data: told }
    case 'anthropic':
      return { data: told, first_id: cards[0]?.['id'] ?? null, last_id: cards.at(-1)?.['id'] ?? null, has_more: false }
    case 'gemini':
      return { models: told }
  }
}

function cardAs(shape: ModelShape, card: LooseObject): LooseObject {
  const { id, created, max_model_len: limit } = card
  switch (shape) {
    case 'openai':
      return card
    case 'anthropic': {
      const seconds = typeof created === 'number' ? created : 0
      return { type: 'model', id, display_name: id, created_at: new Date(seconds * 1000).toISOString() }
    }
    case 'gemini':
      return {
        name: `models/${String(id)}`,
        baseModelId: id,
        version: '1',
        displayName: id,
        ...(typeof limit === 'number' ? { inputTokenLimit: limit, outputTokenLimit: limit } : {}),
        supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
      }
  }
}
