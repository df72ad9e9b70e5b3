/**
 * What an engine's answer may do against the rules of its wire, most telling first. Nobody can say for certain what such
 * an answer was sampled as, or behind what: it is recorded, and no token of it is trained. Each name is a finding of the
 * call, a mask reason and a bucket of the manifest.
 */
export const wireFaults = [
  /** The engine behind the proxy became another one, or another version, while the call ran. */
  'engine_changed',
  /** The answer's own id or model changed in mid-stream. */
  'changed_answer',
  /** A choice without a number, or with one that was not asked for. */
  'invalid_choice',
  /** Two choices of one number. */
  'duplicate_choice',
  /** Tokens, text or another finish reason behind the end of a choice. */
  'content_after_finish',
  /** A sampled id that is no integer of the vocabulary. */
  'invalid_ids',
  /** A prompt id that is no integer of the vocabulary. */
  'invalid_prompt_ids',
  /** Sampled ids without the ids that they stand behind. */
  'missing_prompt_ids',
  /** The prompt was told twice, and not as the same. */
  'changed_prompt_ids',
  /** Another number of prompt ids than the usage says. */
  'prompt_mismatch',
  /** Another number of sampled ids than the usage says. */
  'count_mismatch',
  /** Logprobs and ids that do not stand side by side. */
  'logprob_count_mismatch',
  /** A probability above one. */
  'positive_logprob',
  /** Counts that are no counts. */
  'invalid_usage',
] as const

export type WireFault = (typeof wireFaults)[number]

/** Logprobs that are no finite numbers: the forward pass that made them is broken, so the answer is context and never trained. */
const brokenPasses: readonly string[] = ['nan_logprob', 'infinite_logprob']

/** Why no token of an answer may be trained: a fault of the wire, or of the forward pass; null: they may. */
export function unsoundnessOf(findings: readonly string[]): string | null {
  return wireFaultOf(findings) ?? findings.find((finding) => brokenPasses.includes(finding)) ?? null
}

/** The first fault among a call's findings, null for an answer that may be trained. */
export function wireFaultOf(findings: readonly string[]): WireFault | null {
  if (findings.length === 0) return null
  return wireFaults.find((fault) => findings.includes(fault)) ?? null
}
