import { adapterRoutes } from '../adapters.ts'
import type { EngineControl } from '../control.ts'
import { tellEngine } from '../http.ts'
import { weightInfo } from './about.ts'

/**
 * SGLang's control routes (`srt/entrypoints/http_server.py`, `srt/managers/io_struct.py` PauseGenerationReqInput):
 * `/pause_generation` with mode `retract` (the KV cache of what runs may be flushed and is computed anew) or `in_place`
 * (it is kept), `/continue_generation`, `/abort_request {rid}`, `/get_weight_version` or `/model_info`, `/update_weight_version`,
 * `/flush_cache`. `/load_lora_adapter`, `/unload_lora_adapter` (0.5.23, the same files): a request names its adapter as `lora_path`, or
 * behind a colon in `model`, which wins (`openai/serving_base.py`); unloading waits for what runs. `extra_key` keeps prefix caches apart (`io_struct.py` GenerateReqInput, `openai/protocol.py`).
 * Documented, not run against a real server.
 */
export function sglangControl(root: string, apiKey: string | null): EngineControl {
  const tell = async (path: string, body: unknown = {}) => (await tellEngine(root, path, apiKey, body)).status < 300
  return {
    questions: new Set([
      '/tokenize',
      '/v1/tokenize',
      '/detokenize',
      '/v1/detokenize',
      '/parse_function_call',
      '/separate_reasoning',
    ]),
    saltMember: 'extra_key',
    requestIdMember: 'rid',
    adapters: adapterRoutes(root, apiKey, {
      member: 'lora_path',
      // Any other name will do there.
      isBase: (model, base) => base.includes(model) || !model.includes(':'),
      loadPath: '/load_lora_adapter',
      unloadPath: '/unload_lora_adapter',
    }),
    async weightVersion() {
      const version = (await weightInfo(root, apiKey))?.['weight_version']
      return typeof version === 'string' || typeof version === 'number' ? String(version) : null
    },
    nameWeights: (version) => tell('/update_weight_version', { new_version: version, abort_all_requests: false }),
    async freeze(cache) {
      const frozen = await tell('/pause_generation', { mode: cache === 'clear' ? 'retract' : 'in_place' })
      if (frozen && cache === 'clear') await tell('/flush_cache')
      return frozen
    },
    thaw: () => tell('/continue_generation'),
    async abort(ids) {
      const told = await Promise.all(ids.map((rid) => tell('/abort_request', { rid })))
      return told.every(Boolean)
    },
    clearCache: () => tell('/flush_cache'),
    order: ({ path, body }) => tellEngine(root, path, apiKey, body),
  }
}
