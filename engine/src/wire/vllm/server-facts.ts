import { readFlag, readText, readTokenIds } from '../../json/read.ts'
import { validationError } from '../../errors.ts'
import { renderPrompt } from './chat-request.ts'
import type { Engine } from '../../engine.ts'
import type { Exchange } from '../../http/exchange.ts'

/** `GET /v1/models` (vLLM ModelList, ModelCard). */
export function models(exchange: Exchange, engine: Engine): void {
  const card = { id: engine.profile.model, object: 'model', created: engine.startedAtSeconds }
  const vllm = {
    owned_by: 'vllm',
    root: engine.profile.model,
    parent: null,
    max_model_len: engine.options.maxModelLen,
    permission: [],
  }
  const adapters = engine.adapters.list().map(({ name, path }) => {
    return { ...card, ...vllm, id: name, root: path, parent: engine.profile.model, max_model_len: null }
  })
  exchange.json({
    object: 'list',
    data: [{ ...card, ...(engine.options.wire === 'openai' ? { owned_by: 'scripted-engine' } : vllm) }, ...adapters],
  })
}

/** `GET /health`: 200 and no body. */
export function health(exchange: Exchange): void {
  exchange.empty()
}

/** `GET /version`. */
export function version(exchange: Exchange, engine: Engine): void {
  exchange.json({ version: engine.options.vllmVersion })
}

/** `GET /server_info`: the facts an engine fingerprint is made of. Real servers show it in development mode only. */
export function serverInfo(exchange: Exchange, engine: Engine): void {
  const { profile, options } = engine
  const config = {
    model_config: {
      model: profile.model,
      tokenizer: profile.vocabulary.name,
      max_model_len: options.maxModelLen,
      vocab_size: profile.vocabulary.size,
      logprobs_mode: options.logprobsMode,
    },
    structured_outputs_config: { reasoning_parser: profile.parsers.reasoning },
  }
  const asJson = exchange.url.searchParams.get('config_format') === 'json'
  exchange.json({ scripted_engine: true, vllm_config: asJson ? config : `model='${profile.model}'` })
}

/** `POST /tokenize` with `prompt` or `messages` (vLLM `entrypoints/serve/tokenize/protocol.py`). */
export async function tokenize(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const prompt = readText(body, 'prompt')
  const { vocabulary } = engine.profile
  const ids = prompt === undefined ? await renderPrompt(body, engine) : await vocabulary.encode(prompt)
  const strings = readFlag(body, 'return_token_strs') === true ? [...ids].map((id) => vocabulary.decode([id])) : null
  exchange.json({ count: ids.length, max_model_len: engine.options.maxModelLen, tokens: [...ids], token_strs: strings })
}

/** `POST /detokenize`. */
export async function detokenize(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const ids = readTokenIds(body, 'tokens', engine.profile.vocabulary.size)
  if (ids === undefined) throw validationError('Field required', 'tokens')
  exchange.json({ prompt: engine.profile.vocabulary.decode(ids) })
}
