import { validationError } from '../../errors.ts'
import { readFlag, readText, readTokenIds } from '../../json/read.ts'
import { pause } from '../vllm/weights.ts'
import { sglangChat } from './chat.ts'
import { sglangGenerate } from './generate.ts'
import { parseFunctionCall, separateReasoning } from './parse.ts'
import { sglangPrompt } from './render.ts'
import { isBefore } from '../version.ts'
import type { Engine } from '../../engine.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { RouteTable } from '../../http/server.ts'

/** SGLang's native and control routes (`srt/entrypoints/http_server.py`). */
export const sglangRoutes: RouteTable = {
  'POST /v1/chat/completions': sglangChat,
  'POST /generate': sglangGenerate,
  'POST /tokenize': tokenize,
  'POST /v1/tokenize': tokenize,
  'POST /detokenize': detokenize,
  'POST /v1/detokenize': detokenize,
  'GET /health_generate': (exchange) => exchange.empty(),
  'GET /get_model_info': modelInfo,
  'GET /model_info': modelInfo,
  'POST /parse_function_call': parseFunctionCall,
  'POST /separate_reasoning': separateReasoning,
  'GET /get_server_info': serverInfo,
  'GET /server_info': serverInfo,
  'GET /get_weight_version': (exchange, engine) => exchange.json({ weight_version: engine.weightVersion }),
  'POST /update_weight_version': updateWeightVersion,
  'POST /pause_generation': pauseGeneration,
  'POST /continue_generation': (exchange, engine) => {
    engine.gate.resume()
    exchange.json({ message: 'Generation continued successfully.', status: 'ok' })
  },
  'POST /abort_request': abortRequest,
  'POST /update_weights_from_disk': updateWeights,
  'POST /update_weights_from_tensor': updateWeights,
  'POST /update_weights_from_distributed': updateWeights,
  'POST /flush_cache': (exchange) => exchange.text('Cache flushed.\n', 200, { 'content-type': 'text/plain' }),
}

async function tokenize(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const prompt = readText(body, 'prompt')
  // Before 0.5.13 the route took text only; the member `messages` was ignored and `prompt` missed.
  if (prompt === undefined && isBefore(engine.options.sglangVersion, '0.5.13'))
    throw validationError('Field required', 'prompt')
  const ids = prompt === undefined ? await sglangPrompt(body, engine) : await engine.profile.vocabulary.encode(prompt)
  exchange.json({ tokens: [...ids], count: ids.length, max_model_len: engine.options.maxModelLen })
}

async function detokenize(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const ids = readTokenIds(body, 'tokens', engine.profile.vocabulary.size)
  if (ids === undefined) throw validationError('Field required', 'tokens')
  exchange.json({
    text: engine.profile.vocabulary.decode(ids, { skipSpecial: readFlag(body, 'skip_special_tokens') ?? true }),
  })
}

/** Server arguments beside the version (`http_server.py` `get_server_info`, `server_args.py`). */
function serverInfo(exchange: Exchange, engine: Engine): void {
  const { profile, options } = engine
  exchange.json({
    scripted_engine: true,
    version: options.sglangVersion,
    model_path: profile.model,
    tokenizer_path: profile.vocabulary.name,
    chat_template: profile.template.name,
    tool_call_parser: profile.parsers.tool,
    reasoning_parser: profile.parsers.reasoning,
    context_length: options.maxModelLen,
    vocab_size: profile.vocabulary.size,
    enable_return_routed_experts: options.routedExperts,
    quantization: null,
    speculative_algorithm: null,
  })
}

function modelInfo(exchange: Exchange, engine: Engine): void {
  exchange.json({
    model_path: engine.profile.model,
    tokenizer_path: engine.profile.vocabulary.name,
    is_generation: true,
    weight_version: engine.weightVersion,
  })
}

/** `abort` ends what runs; `retract` and `in_place` keep it, to go on later. */
async function pauseGeneration(exchange: Exchange, engine: Engine): Promise<void> {
  const mode = readText(await exchange.body(), 'mode') ?? 'abort'
  if (!['abort', 'retract', 'in_place'].includes(mode))
    throw validationError('mode must be abort, retract or in_place', 'mode', mode)
  await pause(engine, mode === 'abort' ? 'abort' : 'keep')
  exchange.json({ message: 'Generation paused successfully.', status: 'ok' })
}

async function abortRequest(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const rid = readText(body, 'rid') ?? ''
  engine.abortFlights(readFlag(body, 'abort_all') === true ? undefined : new Set([rid]))
  exchange.empty()
}

async function updateWeightVersion(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const version = readText(body, 'new_version')
  if (version === undefined) throw validationError('Field required', 'new_version')
  if (readFlag(body, 'abort_all_requests') === true) engine.abortFlights()
  exchange.json({
    success: true,
    message: `Weight version updated to ${version}`,
    new_version: engine.updateWeightVersion(version),
  })
}

async function updateWeights(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  if (readFlag(body, 'abort_all_requests') === true) engine.abortFlights()
  const version = readText(body, 'weight_version')
  if (version !== undefined) engine.updateWeightVersion(version)
  exchange.json({ success: true, message: 'Succeeded to update model weights.', num_paused_requests: 0 })
}
