import { z } from 'zod'

/**
 * Every key of `paddock.config.ts`, with its default. `docs/reference/config.md` is held against this schema by a test.
 * Unknown keys are errors at every level. Plugins stand here unchecked: the registry that loads them checks them.
 */
const port = z.int().min(0).max(65_535)
const positiveInt = z.int().min(1)
const durationMs = z.int().min(1)

const engine = z.strictObject({
  /** Base URL of the inference backend, with or without `/v1`; null starts the scripted engine. */
  url: z.url().nullable().default(null),
  apiKey: z.string().nullable().default(null),
  /** Which adapter speaks to it; `auto` asks the engine who it is. */
  kind: z.enum(['auto', 'vllm', 'openai']).default('auto'),
  /** Model name; null: the only one that the engine lists. */
  model: z.string().nullable().default(null),
  scripted: z
    .strictObject({
      /** Profile of the scripted engine: tokenizer, template, parsers. */
      profile: z.string().default('scripted-hermes'),
      seed: z.int().default(0),
      /** File for its ground-truth journal; null: `<data>/engine-journal.jsonl`. */
      journal: z.string().nullable().default(null),
    })
    .prefault({}),
})

const proxy = z.strictObject({
  host: z.string().default('127.0.0.1'),
  /** 0 takes a free one. */
  port: port.default(8790),
  maxBodyBytes: positiveInt.default(64 * 1024 * 1024),
  maxInFlight: positiveInt.default(1024),
  /** A comment is sent to a waiting client after this much silence. */
  keepAliveMs: durationMs.default(15_000),
  /** An engine that is silent for longer is given up. */
  stallMs: durationMs.default(600_000),
})

const control = z.strictObject({
  host: z.string().default('127.0.0.1'),
  port: port.default(8791),
  /** null: made once and kept in `<data>/control-token`, mode 0600. */
  token: z.string().min(16).nullable().default(null),
  /** Base URL of an engine's own console, served with its WebSockets under `/admin/engine/`; null: off. */
  engineConsole: z.url().nullable().default(null),
})

const store = z.strictObject({
  directory: z.string().default('.paddock'),
  /** `normal` survives a killed process, `full` also a power loss. */
  synchronous: z.enum(['normal', 'full']).default('normal'),
})

const sandbox = z.strictObject({
  provider: z.literal('docker').default('docker'),
})

const pinnable = z.number()
/** The policy that sessions are opened with. */
export const sessionSchema = z.strictObject({
  strategy: z.enum(['auto', 'record', 'splice']).default('auto'),
  history: z.enum(['sampled', 'template']).default('sampled'),
  /** Sampling fields forced to a value, whatever the harness asks. */
  pin: z
    .strictObject({
      temperature: pinnable.optional(),
      topP: pinnable.optional(),
      topK: pinnable.optional(),
      minP: pinnable.optional(),
      presencePenalty: pinnable.optional(),
      frequencyPenalty: pinnable.optional(),
      repetitionPenalty: pinnable.optional(),
      maxTokens: pinnable.optional(),
      seed: pinnable.optional(),
    })
    .prefault({}),
  /** Upper bounds. */
  clamp: z
    .strictObject({ maxTokens: positiveInt.optional(), temperature: z.number().optional(), n: positiveInt.optional() })
    .prefault({}),
  /** Values used where the harness sets none. */
  defaults: z
    .strictObject({
      temperature: z.number().optional(),
      topP: z.number().optional(),
      maxTokens: positiveInt.optional(),
    })
    .prefault({}),
  budget: z
    .strictObject({
      maxCalls: positiveInt.nullable().default(null),
      maxSampledTokens: positiveInt.nullable().default(null),
      maxWallMs: durationMs.nullable().default(null),
    })
    .prefault({}),
  /** What becomes of an engine call whose client went away. */
  onDisconnect: z.enum(['finish', 'abort']).default('finish'),
})

const run = z.strictObject({
  /** Rollouts per task. */
  n: positiveInt.default(1),
  /** How many rollouts may be in a stage at once. */
  limits: z
    .strictObject({
      boot: positiveInt.optional(),
      agent: positiveInt.optional(),
      verify: positiveInt.optional(),
    })
    .prefault({}),
  /** Time of each stage. */
  budgets: z
    .strictObject({
      bootMs: durationMs.optional(),
      setupMs: durationMs.optional(),
      agentMs: durationMs.optional(),
      collectMs: durationMs.optional(),
      verifyMs: durationMs.optional(),
    })
    .prefault({}),
})

/** A plugin: the object itself, an npm name, or a path relative to the configuration file. */
const plugin = z.union([z.string(), z.custom<object>((value) => typeof value === 'object' && value !== null)])

export const configSchema = z.strictObject({
  engine: engine.prefault({}),
  proxy: proxy.prefault({}),
  control: control.prefault({}),
  store: store.prefault({}),
  sandbox: sandbox.prefault({}),
  session: sessionSchema.prefault({}),
  environments: z.array(plugin).default([]),
  harnesses: z.array(plugin).default([]),
  exporters: z.array(plugin).default([]),
  run: run.prefault({}),
})

/** What a user writes: every key optional. */
export type ConfigInput = z.input<typeof configSchema>
/** What the program reads: every default filled in. */
export type Config = z.output<typeof configSchema>
/** A plugin as a configuration names it. */
export type PluginRef = string | object
