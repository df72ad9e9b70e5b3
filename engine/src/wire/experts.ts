/** Layers, and experts per token, of the mixture that this engine pretends to be. */
const layers = 2
const experts = 2

/**
 * Which experts each token was routed to: a rule instead of a router. A row per token but the last one, which was never
 * forwarded (vLLM `token_in_token_out/protocol.py` GenerateChoiceBase, SGLang `routed_experts`).
 */
function rowsOf(prompt: Int32Array, sampled: readonly number[]): number[] {
  return [...prompt, ...sampled]
    .slice(0, -1)
    .flatMap((id) => Array.from({ length: layers * experts }, (_, at) => (id + 3 * at) % 8))
}

/** Base64 of a NumPy file (format 1.0) of unsigned bytes, shape (tokens - 1, layers, experts), as vLLM writes it. */
export function routedExpertsNpy(prompt: Int32Array, sampled: readonly number[]): string {
  const rows = rowsOf(prompt, sampled)
  const shape = `(${rows.length / (layers * experts)}, ${layers}, ${experts})`
  const fields = `{'descr': '|u1', 'fortran_order': False, 'shape': ${shape}, }`
  const header = fields.padEnd(Math.ceil((fields.length + 11) / 64) * 64 - 11, ' ')
  const length = Buffer.from([(header.length + 1) & 0xff, (header.length + 1) >> 8])
  const mark = Buffer.from('\u0093NUMPY\u0001\u0000', 'latin1')
  return Buffer.concat([mark, length, Buffer.from(`${header}\n`), Buffer.from(rows)]).toString('base64')
}

/** Base64 of bare 32-bit numbers in the same order, as SGLang writes them. */
export function routedExpertsInt32(prompt: Int32Array, sampled: readonly number[]): string {
  return Buffer.from(Int32Array.from(rowsOf(prompt, sampled)).buffer).toString('base64')
}
