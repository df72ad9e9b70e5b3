import type { LooseObject } from '../../session/sampling.ts'
import { maxNesting, nestingDepth } from '../../../core/index.ts'
import type { WireFault } from '../../../trajectory/index.ts'
import type { KnownFacts } from '../../engines/facts.ts'
import { type SeenAdapter, type SeenWeights, versionUnder } from '../../upstream.ts'
import { choiceIndexOf, countOf, tokenIdOf } from './wire-values.ts'

/** A call of a tool while it comes in. */
export interface ToolCallAnswer {
  /** The number by which the engine's pieces name it. */
  readonly number: number
  id: string | null
  name: string
  arguments: string
}

/** One choice of an answer while it comes in and when it is whole. */
export interface ChoiceAnswer {
  /** -1 for one whose number is none. */
  readonly index: number
  /** The answer's own id in the first piece of the choice. SGLang gives several choices several. */
  answerId: string | null
  content: string | null
  refusal: string | null
  /** Thinking, under the name that the engine uses for it (`reasoning`; `reasoning_content` before vLLM 0.12). */
  reasoning: string | null
  reasoningName: 'reasoning' | 'reasoning_content'
  /** In the order of their numbers, without gaps, whatever numbers the engine gave. */
  readonly toolCalls: ToolCallAnswer[]
  finishReason: string | null
  /** vLLM: the stop string or stop token that ended the choice. */
  stopReason: string | number | null
  /** -1 for what is no id. */
  tokenIds: number[]
  /** How many ids were let go of. */
  tokensLetGo: number
  /** NaN where the engine gave null or no number. */
  logprobs: number[]
  /** Text of each token as the logprobs list gives it. */
  tokenTexts: string[]
  /** The message as the engine wrote it, JSON text; null while it comes in deltas. */
  rawMessage: string | null
  /** The same as a value, until its turn is known; null also where the other fields say all of it. */
  message: LooseObject | null
  /** Structural digest of the message, once it is whole and somebody asked (`answeredTurn`). */
  turn: string | null
  /** Which weights sampled which tokens, where the chat route tells it. */
  weightVersions: readonly { readonly version: string; readonly start: number; readonly end: number }[]
  /** Logprob entries for a client that asked for them. */
  readonly logprobEntries: unknown[]
  /** Per token the candidates that the engine listed, as it wrote them, for a client that asked for logprobs. */
  readonly alternatives: (readonly unknown[])[]
  /** Base64 of the experts that each token was routed to. */
  routedExperts: string | null
}

const noChoices: readonly ChoiceAnswer[] = []
const noFaults: readonly WireFault[] = []

/** Puts an engine's answer together from chunks or from one body. Reading only: what the client gets is cut from the bytes. */
export class Answer {
  /** By index. */
  choices: readonly ChoiceAnswer[] = noChoices
  id: string | null = null
  model: string | null = null
  created: number | null = null
  /** What the engine says it was given; see {@link Answer.tellPrompt}. */
  promptIds: Int32Array | null = null
  /** What of it went against the rules of the wire, as far as only its pieces show it. */
  faults: readonly WireFault[] = noFaults
  usage: LooseObject | null = null
  weightVersionFirst: string | null = null
  weightVersionLast: string | null = null
  /** A prefix cache of older weights was open to the call. */
  staleCache = false
  /** Keys and values were computed anew where the weights changed. */
  recomputed = false
  /** What answered, null where nobody asked what it is. */
  servedBy: KnownFacts | null = null
  /** The LoRA adapter that sampled it, or its last part. */
  adapter: SeenAdapter | null = null
  /** An error that came inside the stream. */
  error: LooseObject | null = null
  /** The client asked for the entries behind the logprobs, or alternatives are kept. */
  readonly keepsEntries: boolean
  /** A choice was told to have ended more than once. */
  endedAgain = false
  /** Pieces of the reply that named its weights. */
  private namings = 0

  constructor(keepLogprobEntries: boolean) {
    this.keepsEntries = keepLogprobEntries
  }

  /** Adds a chunk (`delta`) or a whole completion (`message`). */
  add(root: LooseObject): void {
    if (this.id === null && typeof root['id'] === 'string') this.id = root['id']
    if (this.model === null && typeof root['model'] === 'string') this.model = root['model']
    if (this.created === null && typeof root['created'] === 'number') this.created = root['created']
    if (isObject(root['usage'])) this.usage = root['usage']
    this.error = errorOf(root) ?? this.error
    if (namesWeights(root)) this.namings += 1
    this.weightVersion(root['weight_version'])
    const choices = root['choices']
    if (!Array.isArray(choices)) return
    if (typeof root['model'] === 'string' && root['model'] !== this.model) this.fault('changed_answer')
    if (choices.length > 1 && !haveOwnIndices(choices)) this.fault('duplicate_choice')
    for (const item of choices) if (isObject(item)) this.addChoice(item, root['id'])
  }

  /** The prompt as a piece of the answer tells it, {@link noPrompt} where it tells no list of ids. */
  tellPrompt(ids: Int32Array): void {
    if (this.promptIds !== null && !sameIds(this.promptIds, ids)) this.fault('changed_prompt_ids')
    else this.promptIds = ids
  }

  fault(fault: WireFault): void {
    if (!this.faults.includes(fault)) this.faults = [...this.faults, fault]
  }

  /**
   * The weights that the call met. A reply that names them once does so at its end, which says nothing about its
   * beginning.
   */
  met(seen: SeenWeights): void {
    const toldBoth = this.namings > 1 || this.weightVersionFirst !== this.weightVersionLast
    this.adapter = seen.adapter
    if (this.adapter !== null) {
      if (this.weightVersionFirst !== null)
        this.weightVersionFirst = versionUnder(this.adapter, this.weightVersionFirst)
      if (this.weightVersionLast !== null) this.weightVersionLast = versionUnder(this.adapter, this.weightVersionLast)
    }
    if (!toldBoth) this.weightVersionFirst = seen.before ?? this.weightVersionFirst ?? seen.after
    this.weightVersionLast = seen.after ?? this.weightVersionLast
    this.staleCache = seen.staleCache
    this.recomputed = seen.recomputed
    this.servedBy = seen.facts
  }

  /** All choices have ended. */
  get ended(): boolean {
    return this.choices.length > 0 && this.choices.every((choice) => choice.finishReason !== null)
  }

  /** What is told of it again later needs no token but their number: the rest is in the store by then. */
  letGo(): void {
    this.promptIds = null
    for (const choice of this.choices) {
      choice.message = null
      choice.tokensLetGo += choice.tokenIds.length
      choice.tokenIds = []
      choice.logprobs = []
      choice.tokenTexts = []
      choice.alternatives.length = 0
    }
  }

  /** Nobody asks any more how the engine wrote its messages. */
  letMessagesGo(): void {
    for (const choice of this.choices) choice.rawMessage = null
  }

  /** A count of the usage object, null where the engine gave none. */
  claimed(field: 'prompt_tokens' | 'completion_tokens'): number | null {
    return countOf(this.usage?.[field])
  }

  /** A piece of the choice, told under this id, brings more than the end that the choice has already. */
  piece(choice: ChoiceAnswer, id: string | null, bringsMore: boolean): void {
    if (id !== null) {
      choice.answerId ??= id
      if (choice.answerId !== id) this.fault('changed_answer')
    }
    if (bringsMore && choice.finishReason !== null) this.fault('content_after_finish')
  }

  private addChoice(item: LooseObject, id: unknown): void {
    const choice = this.choice(choiceIndexOf(item['index']))
    this.piece(choice, typeof id === 'string' ? id : null, choice.finishReason !== null && bringsMore(choice, item))
    this.weightVersion(item['weight_version'])
    const part = isObject(item['delta']) ? item['delta'] : item['message']
    if (isObject(part)) addPart(choice, part)
    if (typeof item['finish_reason'] === 'string') {
      if (choice.finishReason !== null) this.endedAgain = true
      choice.finishReason = item['finish_reason']
    }
    const stop = item['stop_reason']
    if (typeof stop === 'string' || typeof stop === 'number') choice.stopReason = stop
    if (item['weight_versions'] !== undefined) choice.weightVersions = spansOf(item['weight_versions'])
    const ids = item['token_ids']
    if (Array.isArray(ids)) for (const id of ids) choice.tokenIds.push(tokenIdOf(id))
    if (typeof item['routed_experts'] === 'string') choice.routedExperts = item['routed_experts']
    const logprobs = item['logprobs']
    const entries = isObject(logprobs) ? logprobs['content'] : null
    if (Array.isArray(entries)) this.addEntries(choice, entries, !Array.isArray(ids))
    if (Array.isArray(ids)) this.side(choice, ids.length)
  }

  /** `named`: where nothing else tells the ids, the texts of the tokens may. */
  private addEntries(choice: ChoiceAnswer, entries: readonly unknown[], named: boolean): void {
    for (const entry of entries) {
      const one = isObject(entry) ? entry : {}
      const id = named ? idNamedBy(one['token']) : null
      if (id !== null) choice.tokenIds.push(id)
      choice.logprobs.push(typeof one['logprob'] === 'number' ? one['logprob'] : Number.NaN)
      choice.tokenTexts.push(typeof one['token'] === 'string' && id === null ? one['token'] : '')
      const top = one['top_logprobs']
      if (!this.keepsEntries) continue
      choice.alternatives.push(Array.isArray(top) ? top : [])
      choice.logprobEntries.push(entry)
    }
  }

  /** Ids and logprobs that came together stand side by side: totals that agree in the end would hide a shift. */
  side(choice: ChoiceAnswer, ids: number): void {
    const { tokenIds, logprobs } = choice
    const apart = ids > 0 && logprobs.length > 0 && tokenIds.length !== logprobs.length
    if (apart) this.fault('logprob_count_mismatch')
  }

  /** Keeps the message of a choice of a whole completion as the engine wrote it. */
  keepMessage(item: unknown, raw: string): void {
    if (!isObject(item)) return
    const choice = this.choice(choiceIndexOf(item['index']))
    choice.rawMessage = raw
    if (isObject(item['message'])) choice.message = item['message']
  }

  /** The choice of that index, a new one where there was none. */
  choice(index: number): ChoiceAnswer {
    for (let i = 0; i < this.choices.length; i += 1) {
      const known = this.choices[i]
      if (known !== undefined && known.index === index) return known
    }
    const fresh: ChoiceAnswer = {
      index,
      answerId: null,
      content: null,
      refusal: null,
      reasoning: null,
      reasoningName: 'reasoning',
      toolCalls: [],
      finishReason: null,
      stopReason: null,
      tokenIds: [],
      tokensLetGo: 0,
      logprobs: [],
      tokenTexts: [],
      rawMessage: null,
      message: null,
      turn: null,
      weightVersions: [],
      logprobEntries: [],
      alternatives: [],
      routedExperts: null,
    }
    // Most answers have one, in an array without room for more.
    this.choices = this.choices.length === 0 ? [fresh] : [...this.choices, fresh].sort((a, b) => a.index - b.index)
    return fresh
  }

  private weightVersion(value: unknown): void {
    if (typeof value !== 'string' && typeof value !== 'number') return
    this.weightVersionFirst ??= String(value)
    this.weightVersionLast = String(value)
  }
}

/** How many tokens were sampled, as far as their ids are known. */
export function tokenCount(choice: ChoiceAnswer | undefined): number {
  return choice === undefined ? 0 : choice.tokenIds.length + choice.tokensLetGo
}

/** The id that vLLM writes in the place of a token's text on order (`return_tokens_as_token_ids`). */
export function idNamedBy(token: unknown): number | null {
  const id =
    typeof token === 'string' && token.startsWith('token_id:') ? /^token_id:(\d+)$/.exec(token)?.[1] : undefined
  return id === undefined ? null : tokenIdOf(Number(id))
}

/** No two choices of one piece have one number. */
function haveOwnIndices(choices: readonly unknown[]): boolean {
  const indices = choices.filter(isObject).map((item) => choiceIndexOf(item['index']))
  return new Set(indices).size === indices.length
}

/** There is something in a piece of a choice that has ended. */
function bringsMore(choice: ChoiceAnswer, item: LooseObject): boolean {
  const part = isObject(item['delta']) ? item['delta'] : isObject(item['message']) ? item['message'] : {}
  const logprobs = isObject(item['logprobs']) ? item['logprobs']['content'] : null
  const finish = item['finish_reason']
  const texts = ['content', 'refusal', 'reasoning', 'reasoning_content'].map((name) => part[name])
  return (
    (typeof finish === 'string' && finish !== choice.finishReason) ||
    texts.some((text) => typeof text === 'string' && text !== '') ||
    [part['tool_calls'], item['token_ids'], logprobs].some((list) => Array.isArray(list) && list.length > 0)
  )
}

/** An error as engines tell it: an object, a text, or (FastChat's, older vLLM's) the whole piece. */
function errorOf(root: LooseObject): LooseObject | null {
  const { error } = root
  if (isObject(error)) return error
  if (typeof error === 'string' && error !== '') return { message: error }
  return root['object'] === 'error' ? root : null
}

function sameIds(one: Int32Array, other: Int32Array): boolean {
  return one.length === other.length && one.every((id, at) => id === other[at])
}

function namesWeights(root: LooseObject): boolean {
  if ((root['weight_version'] ?? null) !== null) return true
  const choices = root['choices']
  return Array.isArray(choices) && choices.some((item) => isObject(item) && (item['weight_version'] ?? null) !== null)
}

/** Spans of output tokens as an engine tells them (SGLang, sgl-project/sglang#35926). */
function spansOf(value: unknown): ChoiceAnswer['weightVersions'] {
  if (!Array.isArray(value)) return []
  return value.filter(isObject).map(({ version, start, end }) => ({
    version: String(version),
    start: tokenIdOf(start),
    end: tokenIdOf(end),
  }))
}

/** Adds thinking. Some versions send both names with the same text: the first one counts. */
export function addReasoning(choice: ChoiceAnswer, name: ChoiceAnswer['reasoningName'], text: string): void {
  if (choice.reasoning !== null && choice.reasoningName !== name) return
  choice.reasoning = (choice.reasoning ?? '') + text
  choice.reasoningName = name
}

function addPart(choice: ChoiceAnswer, part: LooseObject): void {
  if (typeof part['content'] === 'string') choice.content = (choice.content ?? '') + part['content']
  if (typeof part['refusal'] === 'string') choice.refusal = (choice.refusal ?? '') + part['refusal']
  if (typeof part['reasoning'] === 'string') addReasoning(choice, 'reasoning', part['reasoning'])
  const older = part['reasoning_content']
  if (typeof older === 'string') addReasoning(choice, 'reasoning_content', older)
  const calls = part['tool_calls']
  if (!Array.isArray(calls)) return
  calls.forEach((item, position) => {
    if (!isObject(item)) return
    const index = typeof item['index'] === 'number' ? item['index'] : position
    const call = toolCallOf(choice, index) ?? newToolCall(choice, index)
    if (typeof item['id'] === 'string' && item['id'] !== '') call.id ??= item['id']
    const fn = item['function']
    if (!isObject(fn)) return
    if (typeof fn['name'] === 'string' && call.name === '') call.name = fn['name']
    if (typeof fn['arguments'] === 'string') call.arguments += fn['arguments']
  })
}

/** The call that an engine's pieces name by this number. */
export function toolCallOf({ toolCalls }: ChoiceAnswer, number: number): ToolCallAnswer | undefined {
  return toolCalls.find((call) => call.number === number)
}

function newToolCall({ toolCalls }: ChoiceAnswer, number: number): ToolCallAnswer {
  const call = { number, id: null, name: '', arguments: '' }
  toolCalls.push(call)
  toolCalls.sort((a, b) => a.number - b.number)
  return call
}

/** The message of a choice as a chat message. */
export function messageOf(choice: ChoiceAnswer): LooseObject {
  const message: Record<string, unknown> = { role: 'assistant', content: choice.content }
  if (choice.refusal !== null) message['refusal'] = choice.refusal
  if (choice.reasoning !== null) message[choice.reasoningName] = choice.reasoning
  if (choice.toolCalls.length > 0) {
    message['tool_calls'] = choice.toolCalls.map((call) => ({
      id: call.id ?? '',
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    }))
  }
  return message
}

/**
 * Parses an engine's JSON. Bare `NaN` and `Infinity`, which Python writes, read as null. Null when it is no object, or is
 * nested deeper than those who walk through it could go.
 */
export function parseEngineJson(bytes: Buffer): LooseObject | null {
  if (nestingDepth(bytes) > maxNesting) return null
  const text = bytes.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    const repaired = text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (m) => (m.startsWith('"') ? m : 'null'))
    try {
      const value: unknown = JSON.parse(repaired)
      return isObject(value) ? value : null
    } catch {
      return null
    }
  }
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
