/** An engine adapter: a gateway with the chat route of OpenAI and nothing else, for programs that call `createProxy` themselves. */
import type { EngineAdapter } from 'paddock-rl/engine'

const none: Readonly<Record<string, string>> = {}

export function gatewayEngine(o: { readonly url: string; readonly apiKey?: string }): EngineAdapter {
  const learn: EngineAdapter['learn'] = async () => {
    const headers = o.apiKey === undefined ? {} : { authorization: `Bearer ${o.apiKey}` }
    const answer = await fetch(`${o.url}/v1/models`, { headers })
    const { data } = (await answer.json()) as { data: readonly { id: string }[] }
    return {
      fingerprint: {
        engine: 'gateway',
        version: null,
        model: data[0]?.id ?? 'unknown',
        tokenizer: null,
        chatTemplate: null,
        parsers: null,
        logprobKind: 'unknown',
        speculative: null,
        quantisation: null,
      },
      vocabulary: null,
      defaults: {
        temperature: null,
        topP: null,
        topK: null,
        minP: null,
        presencePenalty: null,
        frequencyPenalty: null,
        repetitionPenalty: null,
      },
    }
  }
  return {
    name: 'gateway',
    url: o.url,
    apiKey: o.apiKey ?? null,
    // What is promised here and does not come is a finding on the call.
    gives: { tokenIds: false, logprobs: true },
    logprobKind: 'unknown',
    dispatcher: null,
    planChat: ({ askedLogprobs, streamed, wholeOnly }) => ({
      path: '/v1/chat/completions',
      set: askedLogprobs ? none : { logprobs: 'true' },
      remove: ['return_token_ids'],
      transport: streamed && wholeOnly ? 'buffer' : 'as_asked',
    }),
    fingerprint: async () => (await learn({ probes: false })).fingerprint,
    learn,
  }
}
