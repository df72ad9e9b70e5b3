import { controlRoutes } from './control.ts'
import { sglangLoraRoutes, vllmLoraRoutes } from './wire/lora.ts'
import { sglangRoutes } from './wire/sglang/server.ts'
import { chatCompletions } from './wire/vllm/chat.ts'
import { completions } from './wire/vllm/completions.ts'
import { derender } from './wire/vllm/derender.ts'
import { generate } from './wire/vllm/generate.ts'
import { render } from './wire/vllm/render.ts'
import { detokenize, health, models, serverInfo, tokenize, version } from './wire/vllm/server-facts.ts'
import { weightRoutes } from './wire/vllm/weights.ts'
import type { RouteTable } from './http/server.ts'
import type { EngineOptions } from './options.ts'

/** The routes that a server of the chosen kind has, and no others. */
export function routesFor(options: EngineOptions): RouteTable {
  const common: RouteTable = {
    ...controlRoutes,
    'GET /health': health,
    'GET /v1/models': models,
    'POST /v1/chat/completions': chatCompletions,
  }
  if (options.wire === 'openai') return common
  if (options.wire === 'sglang') return { ...common, ...sglangRoutes, ...(options.lora ? sglangLoraRoutes : {}) }
  const scaleOut: RouteTable = {
    'POST /v1/chat/completions/render': render,
    'POST /v1/chat/completions/derender': derender,
    'POST /inference/v1/generate': generate,
  }
  return {
    ...common,
    ...weightRoutes,
    ...(options.lora ? vllmLoraRoutes : {}),
    ...(options.scaleOut ? scaleOut : {}),
    'POST /v1/completions': completions,
    'GET /version': version,
    'GET /server_info': serverInfo,
    'POST /tokenize': tokenize,
    'POST /detokenize': detokenize,
  }
}
