import type { SamplingParams } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'

/** A parsed request body: a loose object, unknown fields pass through. */
export type LooseObject = Readonly<Record<string, unknown>>

type PinName = keyof SessionPolicy['pin']

/** Wire names of the sampling fields in the chat dialect and vLLM's extensions to it. */
const wireNames: Readonly<Record<PinName, string>> = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  minP: 'min_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  repetitionPenalty: 'repetition_penalty',
  maxTokens: 'max_tokens',
  seed: 'seed',
}

/** Name in {@link SamplingParams.other} of a bound on thinking: an engine that holds it forces tokens that nobody sampled. */
const thinkingBudget = 'thinking_budget'

/** Further fields that shape sampling; the name under which each is kept in {@link SamplingParams.other}. */
const otherTransforms = new Map(
  Object.entries({
    logit_bias: 'logit_bias',
    min_tokens: 'min_tokens',
    bad_words: 'bad_words',
    allowed_token_ids: 'allowed_token_ids',
    logits_processors: 'logits_processors',
    custom_logit_processor: 'logits_processors',
    ignore_eos: 'ignore_eos',
    stop_token_ids: 'stop_token_ids',
    length_penalty: 'length_penalty',
    typical_p: 'typical_p',
    thinking_token_budget: thinkingBudget,
    response_format: 'grammar',
    structured_outputs: 'grammar',
    guided_json: 'grammar',
    guided_regex: 'grammar',
    guided_choice: 'grammar',
    guided_grammar: 'grammar',
    regex: 'grammar',
    ebnf: 'grammar',
  }),
)

/** Every member that {@link askedSampling} reads: a body without one asks for nothing. */
const samplingMembers: ReadonlySet<string> = new Set([
  ...Object.values(wireNames),
  ...otherTransforms.keys(),
  'max_completion_tokens',
  'stop',
  'n',
  'custom_params',
  'tool_choice',
])

const askedNothing: SamplingParams = {
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
  maxTokens: null,
  seed: null,
  stop: [],
  n: 1,
  other: [],
}

/** What a chat request asks for. Wrong types read as not set: the engine is the judge of them. */
export function askedSampling(body: LooseObject): SamplingParams {
  if (!asksForSampling(body)) return askedNothing
  const number = (name: string) => (typeof body[name] === 'number' ? body[name] : null)
  const stop = body['stop']
  return {
    temperature: number('temperature'),
    topP: number('top_p'),
    topK: number('top_k'),
    minP: number('min_p'),
    presencePenalty: number('presence_penalty'),
    frequencyPenalty: number('frequency_penalty'),
    repetitionPenalty: number('repetition_penalty'),
    maxTokens: number('max_completion_tokens') ?? number('max_tokens'),
    seed: number('seed'),
    stop: typeof stop === 'string' ? [stop] : Array.isArray(stop) ? stop.filter((s) => typeof s === 'string') : [],
    n: number('n') ?? 1,
    other: otherSampling(body),
  }
}

function asksForSampling(body: LooseObject): boolean {
  for (const name in body) if (samplingMembers.has(name)) return true
  return false
}

/** Names of the further transforms that a body asks for, sorted. */
function otherSampling(body: LooseObject): readonly string[] {
  const other: string[] = []
  for (const [field, name] of otherTransforms) {
    const value = body[field]
    if (value === undefined || value === null || value === false) continue
    if (field === 'response_format' && isTextFormat(value)) continue
    other.push(name)
  }
  // SGLang's, whose strict thinking reads it (`grammar_manager.py`).
  const params = body['custom_params']
  if (typeof params === 'object' && params !== null && 'thinking_budget' in params) other.push(thinkingBudget)
  const toolChoice = body['tool_choice']
  if (toolChoice === 'required' || (typeof toolChoice === 'object' && toolChoice !== null)) other.push('tool_choice')
  return other.length < 2 ? other : [...new Set(other)].sort()
}

/** The sampling that is sent to the engine, and the body members that make it so. */
export interface AppliedSampling {
  readonly used: SamplingParams
  /** JSON texts by wire name. */
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
}

/** What becomes of a bound on thinking: left where the client wrote it, written as the engine reads it, or left out. */
export type BoundThinking = 'as_written' | ((tokens: string) => Readonly<Record<string, string>>) | null

/** Pins win over clamps, clamps over what was asked, defaults fill what nobody set. */
export function applySampling(
  policy: SessionPolicy,
  asked: SamplingParams,
  body: LooseObject,
  { boundThinking = 'as_written' }: { readonly boundThinking?: BoundThinking } = {},
): AppliedSampling {
  const leavesBound = boundThinking === 'as_written' || body['thinking_token_budget'] === undefined
  if (leavesBound && isEmpty(policy.defaults) && isEmpty(policy.clamp) && isEmpty(policy.pin)) {
    return { used: asked, set: noChange, remove: nothing }
  }
  const set: Record<string, string> = {}
  const remove: string[] = []
  const values: Record<PinName, number | null> = {
    temperature: asked.temperature,
    topP: asked.topP,
    topK: asked.topK,
    minP: asked.minP,
    presencePenalty: asked.presencePenalty,
    frequencyPenalty: asked.frequencyPenalty,
    repetitionPenalty: asked.repetitionPenalty,
    maxTokens: asked.maxTokens,
    seed: asked.seed,
  }
  const put = (name: PinName, value: number) => {
    if (values[name] === value) return
    values[name] = value
    const wire = name === 'maxTokens' && 'max_completion_tokens' in body ? 'max_completion_tokens' : wireNames[name]
    if (wire === 'max_completion_tokens' && 'max_tokens' in body) remove.push('max_tokens')
    set[wire] = JSON.stringify(value)
  }
  for (const name of ['temperature', 'topP', 'maxTokens'] as const) {
    const value = policy.defaults[name]
    if (value !== undefined && values[name] === null) put(name, value)
  }
  for (const name of ['temperature', 'maxTokens'] as const) {
    const bound = policy.clamp[name]
    const value = values[name]
    // An absent max_tokens means "as much as fits", so a clamp on it must be sent; an absent temperature stays absent.
    if (bound !== undefined && (value === null ? name === 'maxTokens' : value > bound)) put(name, bound)
  }
  let n = asked.n
  if (policy.clamp.n !== undefined && n > policy.clamp.n) {
    n = policy.clamp.n
    set['n'] = JSON.stringify(n)
  }
  for (const [name, value] of Object.entries(policy.pin)) {
    if (value !== undefined && isPinName(name)) put(name, value)
  }
  let { other } = asked
  const bound = body['thinking_token_budget']
  if (boundThinking !== 'as_written' && typeof bound === 'number') {
    const members = boundThinking?.(JSON.stringify(bound)) ?? {}
    if (boundThinking === null) other = other.filter((name) => name !== thinkingBudget)
    if (!('thinking_token_budget' in members)) remove.push('thinking_token_budget')
    Object.assign(set, members)
  }
  return { used: { ...asked, ...values, n, other }, set, remove }
}

/** Nothing is set. */
export const noChange: AppliedSampling['set'] = {}
const nothing: readonly string[] = []

function isEmpty(part: object): boolean {
  for (const _ in part) return false
  return true
}

function isPinName(name: string): name is PinName {
  return name in wireNames
}

function isTextFormat(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'text'
}
