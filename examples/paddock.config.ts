/**
 * A configuration that runs: `paddock --config examples/paddock.config.ts doctor`. Every key is optional and listed in
 * docs/reference/config.md.
 */
import { defineConfig } from '../src/config/index.ts'

export default defineConfig({
  // Without a URL the scripted engine is started: real tokens and logprobs, no language model.
  engine: { url: null, scripted: { profile: 'scripted-hermes', seed: 7 } },
  proxy: { port: 8790, maxInFlight: 256 },
  control: { port: 8791 },
  store: { directory: '../.paddock', synchronous: 'normal' },
  // What a harness may not decide: how the policy is sampled, and how long an answer may be.
  session: { pin: { temperature: 1 }, clamp: { maxTokens: 8192 }, budget: { maxCalls: 200 } },
  run: { n: 4, limits: { boot: 2, verify: 2 }, budgets: { agentMs: 15 * 60_000 } },
})
