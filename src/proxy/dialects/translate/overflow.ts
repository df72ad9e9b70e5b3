/** How engines say it, with the numbers by name. vLLM 0.10 to 0.32 (`serving_engine.py`, `renderers`), SGLang 0.5. */
const sentences = [
  /passed (?<input>\d+) input tokens and requested (?<output>\d+) output tokens.*context length is only (?<limit>\d+)/s,
  /maximum context length is (?<limit>\d+) tokens.*\((?<input>\d+) in the messages, (?<output>\d+) in the completion\)/s,
  /is too large: (?<output>\d+)\..*maximum context length is (?<limit>\d+) tokens and your request has (?<input>\d+)/s,
  /context length of (?<limit>\d+) tokens.*: (?<input>\d+) tokens from the input messages and (?<output>\d+) tokens/s,
  /input \((?<input>\d+) tokens\) is longer than the model's context length \((?<limit>\d+) tokens\)/,
  /max_(?:completion_)?tokens=(?<output>\d+) cannot be greater than max_model_len=(?<limit>\d+)/,
]

/** The numbers of an overflow; null where the sentence does not say them. */
export interface Overflow {
  readonly input: string | null
  readonly output: string | null
  readonly limit: string | null
}

/** Reads an engine's sentence about a request that does not fit its context. */
export function readOverflow(said: string): Overflow {
  const found = sentences.map((sentence) => sentence.exec(said)?.groups).find((groups) => groups !== undefined)
  return { input: found?.['input'] ?? null, output: found?.['output'] ?? null, limit: found?.['limit'] ?? null }
}
