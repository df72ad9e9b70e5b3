import type { LooseObject } from '../../session/sampling.ts'
import { askEngine, tryEngine } from '../http.ts'

/** What a server lacks, and what to do about it. */
export interface Lack {
  readonly what: string
  readonly fix: string
}

/**
 * What is wrong with how a vLLM was started, as far as it tells: its token routes, the kind of its logprobs, what
 * its own defaults cut, and in development mode its prefix cache. Run against vLLM 0.32.0: `test/real/flags.test.ts`.
 */
export async function vllmLacks(
  root: string,
  apiKey: string | null,
  known: { readonly tokenRoutes: boolean; readonly logprobKind: boolean },
): Promise<readonly Lack[]> {
  const ask = { messages: [{ role: 'user', content: 'x' }] }
  const [rendered, server] = await Promise.all([
    tryEngine(root, '/v1/chat/completions/render', apiKey, ask),
    askEngine(root, '/server_info?config_format=json', apiKey),
  ])
  const cuts = cutsOf(object(rendered.body?.['sampling_params']))
  const cache = object(object(server?.['vllm_config'])['cache_config'])
  return [
    ...(known.tokenRoutes
      ? []
      : [
          {
            what: 'token routes (render, generate and derender do not answer)',
            fix: 'Start vLLM 0.30 or newer with `--enable-scale-out`; without them calls are recorded and nothing can be spliced.',
          },
        ]),
    ...(known.logprobKind
      ? []
      : [
          {
            what: 'kind of logprobs (a second candidate may not be asked for)',
            fix: 'Start vLLM with `--max-logprobs 2` or more (its default is 20): until it is known they are taken to be raw.',
          },
        ]),
    ...(cuts.length > 0
      ? [
          {
            what: `its own defaults cut the distribution (${cuts.join(', ')})`,
            fix: 'Start vLLM with `--generation-config vllm`, or send these with each call.',
          },
        ]
      : []),
    ...(cache['enable_prefix_caching'] === false
      ? [
          {
            what: 'prefix cache (switched off)',
            fix: 'Start vLLM without `--no-enable-prefix-caching`: each turn of an agent computes its whole prompt again.',
          },
        ]
      : []),
  ]
}

/** Fields that leave tokens out or shift them, with what turns them off. Left out of the answer: as built in. */
const neutral: Readonly<Record<string, readonly number[]>> = {
  top_p: [1],
  top_k: [0, -1],
  min_p: [0],
  repetition_penalty: [1],
  presence_penalty: [0],
  frequency_penalty: [0],
}

function cutsOf(sampling: LooseObject): readonly string[] {
  return Object.entries(neutral).flatMap(([name, off]) => {
    const value = sampling[name]
    return typeof value === 'number' && !off.includes(value) ? [`${name} ${value}`] : []
  })
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
