/** Servers that were started with wrong flags, transcribed: each lack is told with its fix, and engines.md has both. */
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { probeEngine } from '../../src/proxy/index.ts'
import { type EngineFixture, serveFixture, vllm032 } from '../../src/testing/engine/index.ts'

const page = await readFile(new URL('../../docs/reference/engines.md', import.meta.url), 'utf8')
const rendered = (sampling: object): EngineFixture['routes'] => ({
  'POST /v1/chat/completions/render': () => ({ request_id: 'r', token_ids: [1, 2], sampling_params: sampling }),
})
const told = (cached: boolean): EngineFixture['routes'] => ({
  'GET /server_info?config_format=json': () => ({ vllm_config: { cache_config: { enable_prefix_caching: cached } } }),
})

// The transcribed server has neither token routes nor candidates beside the sampled token.
const noRoutes = 'token routes (render, generate and derender do not answer)'
const noKind = 'kind of logprobs (a second candidate may not be asked for)'

it.each<[string, EngineFixture['routes'], readonly string[]]>([
  ['no render route', {}, [noRoutes, noKind]],
  [
    "a model's own top_p and top_k",
    rendered({ temperature: 0.7, top_p: 0.8, top_k: 20, min_p: 0 }),
    [noRoutes, noKind, 'its own defaults cut the distribution (top_p 0.8, top_k 20)'],
  ],
  [
    'a prefix cache that is off',
    { ...rendered({}), ...told(false) },
    [noRoutes, noKind, 'prefix cache (switched off)'],
  ],
  [
    'defaults that cut nothing',
    { ...rendered({ top_p: 1, top_k: -1, repetition_penalty: 1 }), ...told(true) },
    [noRoutes, noKind],
  ],
])('%s', async (_, routes, lacks) => {
  await using server = await serveFixture({ ...vllm032, routes: { ...vllm032.routes, ...routes } })
  const { missing } = await probeEngine(server.url)
  expect(missing.map(({ what }) => what)).toEqual(lacks)
  for (const { what, fix } of missing) expect(page).toContain(`| \`${what}\` | ${fix} |`)
})
