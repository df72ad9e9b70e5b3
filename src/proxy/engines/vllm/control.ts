import { adapterRoutes } from '../adapters.ts'
import type { EngineControl } from '../control.ts'
import { tellEngine, tryEngine } from '../http.ts'

/**
 * vLLM's routes for reinforcement learning, served with `VLLM_SERVER_DEV_MODE=1` (docs.vllm.ai stable, "Async
 * Reinforcement Learning" and `entrypoints/rl/online/api_router.py`): `/pause?mode=keep&clear_cache=`, `/resume`,
 * `/abort_requests` with external request ids, `/weight_info`, `/update_weight_version` (vllm-project/vllm#49040),
 * `/reset_prefix_cache`; `cache_salt` on requests (vllm-project/vllm#17045). Run against a real vLLM 0.32.0, with
 * generation going on (test/real/weights.test.ts). `/v1/load_lora_adapter`, `/v1/unload_lora_adapter` with
 * `VLLM_ALLOW_RUNTIME_LORA_UPDATING` (0.32.0, `entrypoints/serve/lora/api_router.py`): a request names its adapter as `model`, and so does
 * its answer; a request that runs keeps an adapter that is unloaded. Run against 0.32.0 (test/real/lora.test.ts).
 */
export function vllmControl(root: string, apiKey: string | null): EngineControl {
  const tell = async (path: string, body: unknown = {}) => (await tellEngine(root, path, apiKey, body)).status < 300
  return {
    questions: new Set(['/v1/chat/completions/render', '/v1/chat/completions/derender', '/tokenize', '/detokenize']),
    saltMember: 'cache_salt',
    requestIdMember: null,
    adapters: adapterRoutes(root, apiKey, {
      member: 'model',
      isBase: (model, base) => base.includes(model),
      loadPath: '/v1/load_lora_adapter',
      unloadPath: '/v1/unload_lora_adapter',
    }),
    async weightVersion() {
      const { status, body } = await tryEngine(root, '/weight_info', apiKey)
      const version = status < 300 ? body?.['weight_version'] : null
      return typeof version === 'string' || typeof version === 'number' ? String(version) : null
    },
    nameWeights: (version) => tell('/update_weight_version', { new_version: version }),
    freeze: (cache) => tell(`/pause?mode=keep&clear_cache=${cache === 'clear'}`),
    thaw: () => tell('/resume'),
    // Servers name a request by its route and the id of the `X-Request-Id` header.
    abort: (ids) => tell('/abort_requests', { request_ids: ids.flatMap((id) => [id, `generate-tokens-${id}`]) }),
    clearCache: () => tell('/reset_prefix_cache'),
    order: ({ path, body }) => tellEngine(root, path, apiKey, body),
  }
}
