import { parseArgs } from 'node:util'
import { parseJson } from './json/lossless.ts'
import { readFaultOrder } from './faults/orders.ts'
import { profileNames } from './profiles.ts'
import { isBefore } from './wire/version.ts'
import type { FaultOrder } from './faults/orders.ts'
import type { LogprobsMode } from './generation/sampling.ts'

export type Wire = 'vllm' | 'sglang' | 'openai'

/**
 * What a render route can do wrong while chat is as ever: open a turn although `add_generation_prompt` is false, leave an
 * answer at the end out.
 */
export const badRenders = ['opens-turns', 'drops-answers'] as const
export type BadRender = (typeof badRenders)[number]

/** Everything the engine can be told at start. */
export interface EngineOptions {
  readonly host: string
  readonly port: number
  readonly model: string
  readonly wire: Wire
  readonly maxModelLen: number
  readonly seed: number
  readonly tokensPerSecond: number
  readonly firstTokenMs: number
  readonly logprobsMode: LogprobsMode
  readonly weightVersion: string
  /** Whether `/inference/v1/generate` replies carry `weight_versions`. */
  readonly weightVersionsInReplies: boolean
  /** vLLM's `--enable-scale-out`: render, generate and derender routes. */
  readonly scaleOut: boolean
  /** Routes that load LoRA adapters. */
  readonly lora: boolean
  /** Wire `vllm` only. */
  readonly badRender: BadRender | undefined
  /** Wire `openai` only: whether logprobs are given when asked for. */
  readonly openaiLogprobs: boolean
  /** The vLLM release whose wire is followed where releases differ. */
  readonly vllmVersion: string
  /** The SGLang release whose wire is followed where releases differ. */
  readonly sglangVersion: string
  /** Answers say which experts their tokens were routed to. */
  readonly routedExperts: boolean
  /** Wire `sglang` only: a chat stream gives ids in its `sglext` event. */
  readonly sglext: boolean
  /** Wire `sglang` only: chat takes and gives ids. */
  readonly chatIds: boolean
  readonly apiKey: string | undefined
  readonly journal: string | undefined
  readonly faults: readonly FaultOrder[]
}

const FLAGS = {
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '0' },
  model: { type: 'string', default: 'scripted-hermes' },
  wire: { type: 'string', default: 'vllm' },
  'max-model-len': { type: 'string', default: '131072' },
  seed: { type: 'string', default: '0' },
  'tokens-per-second': { type: 'string', default: '0' },
  'first-token-ms': { type: 'string', default: '0' },
  'logprobs-mode': { type: 'string' },
  'weight-version': { type: 'string', default: '0' },
  'no-weight-versions-in-replies': { type: 'boolean', default: false },
  'no-scale-out': { type: 'boolean', default: false },
  'enable-scale-out': { type: 'boolean', default: false },
  'no-lora': { type: 'boolean', default: false },
  'bad-render': { type: 'string' },
  'no-logprobs': { type: 'boolean', default: false },
  'vllm-version': { type: 'string', default: '0.32.0' },
  'sglang-version': { type: 'string', default: '0.5.16' },
  'routed-experts': { type: 'boolean', default: false },
  'no-sglext': { type: 'boolean', default: false },
  'no-chat-ids': { type: 'boolean', default: false },
  'api-key': { type: 'string' },
  journal: { type: 'string' },
  fault: { type: 'string', multiple: true },
  help: { type: 'boolean', default: false },
} as const

/** One line per flag, for `--help`. */
export const usage = `usage: node engine/src/main.ts [flags]
  --model NAME              one of ${profileNames.join(', ')}
  --wire vllm|sglang|openai the server to stand for (vllm)
  --port N, --host H        where to listen (0 = any free port, 127.0.0.1)
  --max-model-len N         context length in tokens (131072)
  --seed N                  seed of requests that bring none (0)
  --tokens-per-second N     speed of each stream, 0 = as fast as possible (0)
  --first-token-ms N        wait before the first token (0)
  --logprobs-mode M         raw_logprobs | temperature_logprobs | processed_logprobs (raw; temperature for sglang)
  --weight-version V        version of the first weights (0)
  --no-weight-versions-in-replies
  --no-scale-out            switch render, generate and derender off
  --no-lora                 switch the routes that load LoRA adapters off
  --bad-render HOW          wire vllm: ${badRenders.join(' | ')}: what the render route does wrong
  --no-logprobs             wire openai: give no logprobs
  --vllm-version V          wire of this release where releases differ (0.32.0; before 0.32 generate logprobs name
                            tokens "token_id:N")
  --sglang-version V        the same for wire sglang (0.5.16; before 0.5.13 chat neither takes nor gives ids)
  --routed-experts          give routed experts, as a server that was started to return them
  --no-sglext               wire sglang: chat streams give no ids
  --no-chat-ids             wire sglang: chat neither takes nor gives ids, as behind a router that drops them
  --api-key KEY             required as bearer on /v1 and /inference
  --journal FILE            append the ground truth here, one JSON line per event
  --fault JSON|KIND         a fault order, as for POST /control/faults; may be repeated`

/** Reads the command line. Throws an Error with a plain message for a flag it cannot use. */
export function readOptions(argv: readonly string[]): EngineOptions | 'help' {
  const { values } = parseArgs({ args: [...argv], options: FLAGS, strict: true })
  if (values.help) return 'help'
  const wire = (['vllm', 'sglang', 'openai'] as const).find((name) => name === values.wire)
  if (wire === undefined) throw new Error(`--wire must be vllm, sglang or openai, not ${values.wire}`)
  const modes = ['raw_logprobs', 'temperature_logprobs', 'processed_logprobs'] as const
  const mode = values['logprobs-mode'] ?? (wire === 'sglang' ? 'temperature_logprobs' : 'raw_logprobs')
  const logprobsMode = modes.find((name) => name === mode)
  if (logprobsMode === undefined) throw new Error(`--logprobs-mode must be one of ${modes.join(', ')}`)
  const badRender = badRenders.find((name) => name === values['bad-render'])
  if (values['bad-render'] !== badRender) throw new Error(`--bad-render must be one of ${badRenders.join(', ')}`)
  return {
    host: values.host,
    port: readNumberFlag('port', values.port),
    model: values.model,
    wire,
    maxModelLen: readNumberFlag('max-model-len', values['max-model-len']),
    seed: readNumberFlag('seed', values.seed),
    tokensPerSecond: readNumberFlag('tokens-per-second', values['tokens-per-second']),
    firstTokenMs: readNumberFlag('first-token-ms', values['first-token-ms']),
    logprobsMode,
    weightVersion: values['weight-version'],
    weightVersionsInReplies: !values['no-weight-versions-in-replies'],
    scaleOut: !values['no-scale-out'],
    lora: !values['no-lora'],
    badRender,
    openaiLogprobs: !values['no-logprobs'],
    vllmVersion: values['vllm-version'],
    sglangVersion: values['sglang-version'],
    routedExperts: values['routed-experts'],
    sglext: !values['no-sglext'],
    chatIds: !values['no-chat-ids'] && !isBefore(values['sglang-version'], '0.5.13'),
    apiKey: values['api-key'],
    journal: values.journal,
    faults: (values.fault ?? []).map(readFaultFlag),
  }
}

function readNumberFlag(name: string, text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new Error(`--${name} needs a number, not ${text}`)
  return value
}

function readFaultFlag(text: string): FaultOrder {
  const order = text.startsWith('{') ? parseJson(text) : new Map([['kind', text]])
  if (!(order instanceof Map)) throw new Error(`--fault needs a JSON object or a kind, not ${text}`)
  return readFaultOrder(order)
}
