/** A real `vllm serve` on loopback, from what `scripts/real-up` set up. */
import { join } from 'node:path'
import { startVllm as start, type Vllm } from '../../scripts/learn.ts'

/** What `scripts/real-up` printed; `npm run real` sets it, and without it there is no lane. */
export const cache = process.env['PADDOCK_REAL'] ?? ''

/** Models that `scripts/real-up` made. */
export type RealModel = 'smollm2' | 'qwen3-tiny' | 'llama3-tiny' | 'mistral-tiny' | 'deepseek-tiny' | 'vision-tiny'

/** The environment of a server whose model is so small that a second thread costs more than it computes. */
export const oneThread = { OMP_NUM_THREADS: '1' }

/** Where a model's weights and tokenizer lie. */
export const weights = (model: RealModel): string => join(cache, 'models', model)

/** A running server. */
export interface RealServer extends Vllm {
  readonly model: RealModel
}

/** Starts vLLM with a model of the lane and waits until it says that it is ready. */
export async function startVllm(
  model: RealModel,
  flags: readonly string[] = [],
  place: { readonly port?: number } = {},
): Promise<RealServer> {
  const env = model === 'smollm2' ? {} : oneThread
  return { ...(await start({ cache, directory: weights(model), model, flags, env, ...place })), model }
}
