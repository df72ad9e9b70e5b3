import type { Digest, EngineFingerprint, LogprobKind, SamplingParams } from '../../core/index.ts'
import { countOf } from '../dialects/chat/wire-values.ts'
import type { LooseObject } from '../session/sampling.ts'

/** What an engine samples with where a request does not say; null where it does not tell. */
export type SamplingDefaults = Readonly<
  Record<
    'temperature' | 'topP' | 'topK' | 'minP' | 'presencePenalty' | 'frequencyPenalty' | 'repetitionPenalty',
    number | null
  >
>

/** What an engine says of itself. */
export interface EngineFacts {
  readonly fingerprint: EngineFingerprint
  /** How many ids its vocabulary has, null where it does not tell. */
  readonly vocabulary: number | null
  readonly defaults: SamplingDefaults
}

/** What is known of an engine, with the digest under which its fingerprint is stored. */
export type KnownFacts = EngineFacts & { readonly digest: Digest }

/** How an engine is asked what it is. */
export interface Learning {
  /** Also find out by a few short answers what its logprobs are of, where it does not tell. */
  readonly probes: boolean
}

export const untoldDefaults: SamplingDefaults = {
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
}

/** Without a model's `generation_config`; 0 and -1 both mean that `top_k` is off. */
const builtIn: SamplingDefaults = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repetitionPenalty: 1,
}

const wireNames: Readonly<Record<keyof SamplingDefaults, string>> = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  minP: 'min_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  repetitionPenalty: 'repetition_penalty',
}

/** What an engine tells by wire names; what it leaves out is as vLLM and SGLang build it in. */
export function toldDefaults(told: LooseObject): SamplingDefaults {
  const value = (name: keyof SamplingDefaults) => {
    const given = told[wireNames[name]]
    return typeof given === 'number' ? given : builtIn[name]
  }
  return {
    temperature: value('temperature'),
    topP: value('topP'),
    topK: value('topK'),
    minP: value('minP'),
    presencePenalty: value('presencePenalty'),
    frequencyPenalty: value('frequencyPenalty'),
    repetitionPenalty: value('repetitionPenalty'),
  }
}

let last: {
  readonly used: SamplingParams
  readonly defaults: SamplingDefaults
  readonly whole: SamplingParams
} | null = null

/** The sampling that was sent, with the engine's own where nothing was said. */
export function withDefaults(used: SamplingParams, defaults: SamplingDefaults): SamplingParams {
  if (defaults === untoldDefaults) return used
  // Most calls ask for nothing, all with one object.
  if (last?.used === used && last.defaults === defaults) return last.whole
  const whole = {
    ...used,
    temperature: used.temperature ?? defaults.temperature,
    topP: used.topP ?? defaults.topP,
    topK: used.topK ?? defaults.topK,
    minP: used.minP ?? defaults.minP,
    presencePenalty: used.presencePenalty ?? defaults.presencePenalty,
    frequencyPenalty: used.frequencyPenalty ?? defaults.frequencyPenalty,
    repetitionPenalty: used.repetitionPenalty ?? defaults.repetitionPenalty,
  }
  last = { used, defaults, whole }
  return whole
}

/**
 * The size of the vocabulary in what a server tells of itself, at any depth; the largest of several, because parts of a
 * model (vision, audio) have small ones of their own.
 */
export function vocabularyIn(told: unknown): number | null {
  if (typeof told !== 'object' || told === null) return null
  let largest: number | null = null
  for (const [name, value] of Object.entries(told)) {
    const found = name === 'vocab_size' || name === 'n_vocab' ? countOf(value) : vocabularyIn(value)
    if (found !== null && found > (largest ?? 0)) largest = found
  }
  return largest
}

/** vLLM's `--logprobs-mode` as a kind, null for one that is not told or is none of ours. */
export function kindOfMode(mode: string | null): LogprobKind | null {
  if (mode === 'raw_logprobs') return 'raw'
  return mode === 'processed_logprobs' ? 'processed' : null
}

/** What differs, in words; null where nothing does. */
export function differenceOf(before: EngineFacts, after: EngineFacts): string | null {
  const one = { ...before.fingerprint, vocabulary: before.vocabulary, ...before.defaults }
  const other = { ...after.fingerprint, vocabulary: after.vocabulary, ...after.defaults }
  const changed = Object.keys(one).filter((name) => Reflect.get(one, name) !== Reflect.get(other, name))
  if (changed.length === 0) return null
  return changed
    .map((name) => `${name} ${String(Reflect.get(one, name))} -> ${String(Reflect.get(other, name))}`)
    .join(', ')
}
