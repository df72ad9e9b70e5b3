import { controlRoutes } from './control.ts'
import { chatCompletions } from './wire/vllm/chat.ts'
import { detokenize, health, models, serverInfo, tokenize, version } from './wire/vllm/server-facts.ts'
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
  return {
    ...common,
    'GET /version': version,
    'GET /server_info': serverInfo,
    'POST /tokenize': tokenize,
    'POST /detokenize': detokenize,
  }
}
