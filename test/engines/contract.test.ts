/** The engine suite on transcribed shapes, on the scripted engine's APIs, and on a real server where one is named. */
import {
  type EngineAdapter,
  llamacppEngine,
  openaiEngine,
  probeEngine,
  sglangEngine,
  vllmEngine,
} from '../../src/proxy/index.ts'
import {
  engineContract,
  type EngineFixture,
  llamacpp11549,
  openaiPlain,
  serveFixture,
  sglang0513,
  sglangSglext,
  vllm011,
  vllm032,
} from '../../src/testing/engine/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'

const fixtures: readonly (readonly [EngineFixture, (url: string) => EngineAdapter])[] = [
  [vllm032, (url) => vllmEngine({ url, version: '0.32.0' })],
  [vllm011, (url) => vllmEngine({ url, version: '0.11.2' })],
  [sglangSglext, (url) => sglangEngine({ url, streamsIds: true })],
  [sglang0513, (url) => sglangEngine({ url, version: '0.5.13' })],
  [llamacpp11549, (url) => llamacppEngine({ url })],
  [openaiPlain, (url) => openaiEngine({ url })],
]
for (const [fixture, adapter] of fixtures) {
  const { promptIds, sampled } = fixture
  engineContract(`${fixture.engine} ${fixture.version ?? ''}, transcribed`, {
    start: async () => {
      const server = await serveFixture(fixture)
      return {
        adapter: adapter(server.url),
        model: fixture.model,
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      }
    },
    givesIds: promptIds.length > 0,
    splices: false,
    takesTools: fixture.engine !== 'llamacpp',
    alive: false,
    ...(promptIds.length > 0 ? { expected: { promptIds, ...sampled } } : {}),
  })
}

const apis: readonly (readonly [string, readonly string[], (url: string) => EngineAdapter])[] = [
  ['vllm', [], (url) => vllmEngine({ url })],
  ['sglang', [], (url) => sglangEngine({ url, streamsIds: true })],
  ['sglang', ['--no-sglext'], (url) => sglangEngine({ url })],
  ['openai', [], (url) => openaiEngine({ url })],
]
for (const [wire, flags, adapter] of apis) {
  engineContract(`scripted engine as ${wire} ${flags.join(' ')}`, {
    start: async () => {
      const engine = await useEngine('--wire', wire, ...flags)
      return { adapter: adapter(engine.url), model: 'scripted-hermes', [Symbol.asyncDispose]: async () => undefined }
    },
    givesIds: wire !== 'openai',
    splices: wire !== 'openai',
    alive: true,
  })
}

const { ENGINE_URL: url, ENGINE_API_KEY: key, MODEL: named } = process.env
if (url !== undefined && url !== '') {
  const apiKey = key ?? null
  const report = await probeEngine(url, { apiKey, model: named ?? null })
  const { kind, version, logprobKind, streamsIds } = report
  const own = kind === 'llamacpp'
  engineContract(`${kind} ${version ?? ''} at ENGINE_URL`, {
    start: async () => ({
      adapter:
        kind === 'vllm'
          ? vllmEngine({ url, apiKey, version, logprobKind })
          : kind === 'sglang'
            ? sglangEngine({ url, apiKey, version, logprobKind, streamsIds })
            : own
              ? llamacppEngine({ url, apiKey })
              : openaiEngine({ url, apiKey, logprobs: report.givesLogprobs }),
      model: report.model,
      [Symbol.asyncDispose]: async () => {},
    }),
    givesIds: report.givesIds,
    splices: report.splice !== null,
    takesTools: report.givesToolCalls,
    severalChoices: !own,
    cutsAtContext: own,
    missesLogprobs: own,
    alive: true,
  })
}
