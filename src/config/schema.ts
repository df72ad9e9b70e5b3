import { z } from 'zod'
import { logLevels } from '../core/index.ts'

/**
 * Every key of `paddock.config.ts`, with its default and its description; `docs/reference/config.md` is made of them.
 * Unknown keys are errors at every level. Plugins stand here unchecked: the registry that loads them checks them.
 */
const port = z.int().min(0).max(65_535)
const positiveInt = z.int().min(1)
const wholeInt = z.int().min(0)
const durationMs = z.int().min(1)

const engine = z.strictObject({
  url: z
    .union([z.url(), z.array(z.url())])
    .nullable()
    .default(null)
    .describe(
      'Base URL of the inference backend, with or without `/v1`; a list (in `ENGINE_URL` and `--engine`: separated by commas) names replicas of one engine; an empty list (there: `none`) waits until a trainer names some (`PUT /rl/v1/runs/:id/engines`); null starts the scripted engine.',
    ),
  apiKey: z.string().nullable().default(null).describe('Bearer key of the backend.'),
  keys: z
    .record(z.string().regex(/^[A-Za-z][\w-]*$/), z.string().min(1))
    .default({})
    .describe('Bearer keys by name, for replicas that a trainer names (`key_ref` of `PUT /rl/v1/runs/:id/engines`).'),
  kind: z
    .enum(['auto', 'vllm', 'sglang', 'llamacpp', 'openai'])
    .default('auto')
    .describe('Adapter; `auto` asks the engine who it is.'),
  model: z.string().nullable().default(null).describe('Model name; null: the only one that the engine lists.'),
  fleet: z
    .strictObject({
      healthMs: durationMs.default(5000).describe('Time between two looks at the health route of each replica.'),
      ejectAfter: positiveInt.default(3).describe('Failures in a row after which a replica gets no more calls.'),
      ejectMs: durationMs
        .default(1000)
        .describe('First pause of an ejected replica; it doubles with each return that fails.'),
      maxEjectMs: durationMs.default(60_000).describe('Longest such pause.'),
      overload: z
        .number()
        .min(1)
        .default(1.5)
        .describe('A session leaves its replica where that one runs more than this many times the mean of all.'),
    })
    .prefault({}),
  scripted: z
    .strictObject({
      profile: z
        .string()
        .default('scripted-hermes')
        .describe('Profile of the scripted engine: tokenizer, template, parsers.'),
      seed: z.int().min(0).default(0).describe('Seed of requests that bring none.'),
      journal: z
        .string()
        .nullable()
        .default(null)
        .describe('File for its ground truth; null: `engine-journal.jsonl` in the data directory.'),
    })
    .prefault({}),
})

const scoringEngine = (what: string) =>
  z
    .strictObject({
      url: z.url().describe('Its base URL, with or without `/v1`.'),
      apiKey: z.string().nullable().default(null).describe('Its bearer key.'),
      kind: z.enum(['auto', 'vllm', 'sglang']).default('auto').describe('Its adapter; `auto` asks it who it is.'),
    })
    .nullable()
    .default(null)
    .describe(what)

const rolesEngine = (what: string) =>
  z
    .strictObject({
      url: z.url().describe('Its base URL, with or without `/v1`.'),
      apiKey: z.string().nullable().default(null).describe('Its bearer key.'),
      kind: z
        .enum(['auto', 'vllm', 'sglang', 'llamacpp', 'openai'])
        .default('auto')
        .describe('Its adapter; `auto` asks it who it is.'),
      model: z.string().nullable().default(null).describe('Model name; null: the only one that it lists.'),
    })
    .nullable()
    .default(null)
    .describe(what)

const engines = z.strictObject({
  reference: scoringEngine(
    "Engine of a trainer's reference model (`score: {reference: true}` of its run); null: there is none.",
  ),
  judge: rolesEngine(
    'Engine that judges of verifiers are asked at, on the record; null: each asks the server that its environment names.',
  ),
  teacher: scoringEngine("Engine of a trainer's teacher (`score: {teacher: true}` of its run); null: there is none."),
  user: rolesEngine(
    'Engine of the model that simulates the users of tasks; null: there is none, and tasks with such a user are refused. See docs/guides/tasks-with-a-user.md.',
  ),
})

/** What engines of the same base URLs have in common, however these are written. */
export function enginesPlace(urls: string | readonly string[]): string {
  const plain = [urls].flat().map((url) => url.replace(/\/+$/, '').replace(/\/v1$/, ''))
  return plain.toSorted().join(' ')
}

const policySchema = z.strictObject({
  model: z.string().min(1).nullable().default(null).describe('Model name; null: the only one that its engine lists.'),
  adapter: z
    .union([
      z
        .string()
        .min(1)
        .transform((name) => ({ name, path: null })),
      z.strictObject({ name: z.string().min(1), path: z.string().min(1) }),
    ])
    .nullable()
    .default(null)
    .describe(
      'LoRA adapter that it begins as: its name at the engine, or `{name, path}` where the engine is to load it; null: the weights of the engine itself.',
    ),
  engines: z
    .union([z.url(), z.array(z.url()).min(1)])
    .nullable()
    .default(null)
    .describe(
      'Base URL of an engine of its own, or a list of replicas of that; null: the one of `engine`, which several may share.',
    ),
  apiKey: z.string().nullable().default(null).describe('Bearer key of `engines`.'),
  kind: z
    .enum(['auto', 'vllm', 'sglang', 'llamacpp', 'openai'])
    .default('auto')
    .describe('Adapter of `engines`; `auto` asks them who they are.'),
  trained: z.boolean().default(true).describe('False: it is recorded and never trained.'),
  harness: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Harness of its agent where the agents of a task take turns; null: that of the run.'),
})

const policies = z
  .record(z.string(), policySchema)
  .default({})
  .superRefine((all, context) => {
    const wrong = Object.keys(all).find((name) => !/^[a-z][a-z0-9-]{0,39}$/.test(name))
    if (wrong !== undefined) {
      const message = 'is no name of a policy: use lower case letters, digits and dashes, 40 at most'
      context.addIssue({ code: 'custom', path: [wrong], message })
    }
    const taken = new Map<string, string>()
    for (const [name, { model, adapter, engines, apiKey, kind }] of Object.entries(all)) {
      if (engines === null && (apiKey !== null || kind !== 'auto')) {
        const key = apiKey === null ? 'kind' : 'apiKey'
        context.addIssue({
          code: 'custom',
          path: [name, key],
          message: 'goes with `engines`: name them, or leave it out',
        })
      }
      const at = engines === null ? 'engine' : enginesPlace(engines)
      const key = JSON.stringify([at, adapter?.name ?? null, adapter === null ? model : null])
      const other = taken.get(key)
      taken.set(key, other ?? name)
      if (other === undefined) continue
      const same =
        adapter === null ? `the same model${model === null ? '' : ` ${model}`}` : `the same adapter ${adapter.name}`
      const message = `is ${same} at the same engine as policy ${other}: give one of the two an adapter, a model or \`engines\` of its own`
      context.addIssue({ code: 'custom', path: [name], message })
    }
  })
  .describe(
    'Several policies by name, each with sessions, weights and rows of its own; the first one is that of tasks with one agent. Empty: one policy, on `engine`. See docs/guides/several-agents.md.',
  )

const proxy = z.strictObject({
  host: z.string().default('127.0.0.1').describe('Address of the inference listener.'),
  port: port.default(8790).describe('Its port; 0 takes a free one.'),
  maxBodyBytes: positiveInt.default(64 * 1024 * 1024).describe('Largest request body.'),
  maxInFlight: positiveInt.default(4096).describe('Calls that may be with the engine at once; further ones wait.'),
  maxQueued: positiveInt.default(8192).describe('Calls that may wait; beyond it the answer is 503.'),
  keepAliveMs: durationMs.default(10_000).describe('A waiting client gets a comment after this much silence.'),
  stallMs: durationMs.default(600_000).describe('An engine that is silent for longer is given up.'),
  stallTaintMs: durationMs
    .default(5000)
    .describe('A rollout is tainted whose client leaves a call in which the engine has been silent for this long.'),
})

const control = z.strictObject({
  host: z.string().default('127.0.0.1').describe('Address of the control API.'),
  port: port.default(8791).describe('Its port; 0 takes a free one.'),
  token: z
    .string()
    .min(16)
    .nullable()
    .default(null)
    .describe('Control token; null: made once and kept in `control-token` in the data directory, mode 0600.'),
  engineConsole: z
    .url()
    .nullable()
    .default(null)
    .describe("Base URL of the engine's own console, served with its WebSockets under `/admin/engine/`; null: off."),
})

const tls = z.strictObject({
  cert: z
    .string()
    .nullable()
    .default(null)
    .describe('PEM file of the certificate (and its chain) of the control listener, which then speaks TLS.'),
  key: z.string().nullable().default(null).describe('PEM file of its key.'),
  ca: z
    .string()
    .nullable()
    .default(null)
    .describe('PEM file of certificates that a node trusts besides those of this machine.'),
  plainHttp: z
    .boolean()
    .default(false)
    .describe('The network between the machines encrypts: plain HTTP beyond this one is not refused.'),
})

const nodes = z.strictObject({
  leaseMs: durationMs
    .default(60_000)
    .describe('Silence of a node after which its jobs may go to another; it says that it lives six times as often.'),
  maxHandInMb: positiveInt.default(512).describe('Largest rollout that a node may hand in, in MB.'),
  handInsMb: positiveInt
    .default(1024)
    .describe('Most of hand-ins that the coordinator has in memory at once, in MB; further ones wait, unread.'),
})

const node = z.strictObject({
  keepMs: durationMs
    .default(86_400_000)
    .describe(
      'So long `paddock node` keeps what it handed in, for a coordinator whose catalogue lost it; as often it begins an empty store.',
    ),
})

const store = z.strictObject({
  directory: z.string().default('.paddock').describe('Data directory, relative to this file.'),
  synchronous: z
    .enum(['normal', 'full'])
    .default('normal')
    .describe('`normal` survives a killed process, `full` also a power loss.'),
  catalogue: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'Must be a URL `postgres://user@host/database`.')
    .nullable()
    .default(null)
    .describe(
      "URL of a PostgreSQL database for catalogue, queue and trainer's book; null: they are in the data directory.",
    ),
})

const s3 = z.strictObject({
  endpoint: z.url().nullable().default(null).describe("Its base URL; null: Amazon's, of the region."),
  bucket: z.string().min(1).describe('The bucket, which is there already.'),
  prefix: z
    .string()
    .default('')
    .describe('What the keys of all objects begin with, such as `paddock/`; a folder per data directory follows.'),
  region: z.string().min(1).default('us-east-1').describe('Its region, which requests are signed for.'),
  pathStyle: z
    .boolean()
    .default(true)
    .describe('The bucket is a part of the path; false: of the host name, as Amazon asks for new buckets.'),
})

/** Not both: an object store, or a directory. */
const onePlace = ({ s3: store, directory }: { readonly s3: unknown; readonly directory: string | null }): boolean =>
  store === null || directory === null
const notBoth = 'Name `s3` or `directory`, not both.'
const shared = z.string().min(1).nullable().default(null)

const blobs = z
  .strictObject({
    s3: s3
      .nullable()
      .default(null)
      .describe(
        'S3-compatible object store for blobs (artifacts, pictures, side channels), with the keys of `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; null: they are in the data directory.',
      ),
    directory: shared.describe('Instead of that, a directory that machines share; it is there already.'),
    spoolMb: positiveInt
      .default(1024)
      .describe('Most that waits in the data directory while that store or directory is away, in MB.'),
    waitMs: durationMs
      .default(60_000)
      .describe('How long a blob beyond that waits for it before its rollout ends as a fault of infrastructure.'),
  })
  .refine(onePlace, notBoth)

const archive = z
  .strictObject({
    s3: s3
      .nullable()
      .default(null)
      .describe(
        'S3-compatible object store for the records of finished sessions, with the keys of the one for blobs; null: they are in the log of the data directory.',
      ),
    directory: shared.describe('Instead of that, a directory that machines share; it is there already.'),
  })
  .refine(onePlace, notBoth)

const log = z.strictObject({
  level: z.enum(logLevels).default('silent').describe('Least weight of a line that is written.'),
  file: z
    .string()
    .nullable()
    .default(null)
    .describe('Where JSON lines are appended, relative to the working directory; null: stderr.'),
})

const sandbox = z.strictObject({
  provider: z.literal('docker').default('docker').describe('Where boxes come from.'),
  socketPath: z
    .string()
    .nullable()
    .default(null)
    .describe('Unix socket of the daemon; null: `sandbox.host`, `DOCKER_HOST`, else the usual one.'),
  host: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Daemon of another machine, `tcp://host[:port]`; null: `DOCKER_HOST`. Off loopback only with TLS.'),
  tls: z
    .strictObject({
      ca: z.string().nullable().default(null).describe("PEM file that the daemon's certificate is checked against."),
      cert: z.string().nullable().default(null).describe('PEM file of the certificate that is shown to the daemon.'),
      key: z.string().nullable().default(null).describe('PEM file of its key.'),
    })
    .prefault({})
    .describe('TLS to the daemon; all null: `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH`.'),
  runtime: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      'Container runtime of boxes, by its name in the daemon (`docker info`); null: the default of the daemon.',
    ),
  warmBoxes: z
    .int()
    .min(0)
    .max(256)
    .default(4)
    .describe('Boxes that are made ahead while rollouts wait for their turn; 0: none.'),
  parkWarmBoxes: z
    .boolean()
    .default(false)
    .describe(
      'Whether boxes made ahead wait paused (claimed a little later, left to the reaper if Paddock is killed).',
    ),
  diskWatermark: z
    .number()
    .gt(0)
    .max(1)
    .default(0.85)
    .describe("Part of the daemon's disk that may be full before `gc` removes task images, least recently used first."),
  images: z
    .strictObject({
      map: z
        .record(z.string().min(1), z.string().min(1))
        .default({})
        .describe('Images that stand for those that tasks name: `{"ubuntu:24.04": "my/base:1"}`.'),
      mirrors: z
        .array(
          z
            .string()
            .regex(
              /^(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+(?=:\d))(?::\d+)?(?:\/[\w.-]+)*$/,
              'expected host[:port][/path]',
            ),
        )
        .default([])
        .describe('Registries with the images of Docker Hub, `host[:port][/path]`, asked before it, in this order.'),
    })
    .prefault({}),
})

const pinned = (what: string) => z.number().optional().describe(`Forces ${what}, whatever the harness asks.`)

/** A text that the policy sees and the harness does not: `Injection` of the trajectory's contract. */
const injection = z.strictObject({
  at: z.union([z.enum(['system', 'task']), z.strictObject({ turn: positiveInt })]),
  text: z.string().min(1),
  label: z.string().min(1).max(100),
  keep: z.enum(['always', 'once']).default('always'),
})

const injections = z
  .array(injection)
  .max(50)
  .describe(
    'Texts that the policy sees and the harness does not: `at` (`system`, `task` or `{turn: n}`, behind what the agent is told after n answers), `text`, `label`, `keep` (`always`, or `once` for the one prompt that ends there).',
  )

/** The policy that sessions are opened with. */
export const sessionSchema = z.strictObject({
  strategy: z
    .enum(['auto', 'record', 'splice'])
    .default('auto')
    .describe('How token ids are captured; `auto` takes the strongest that the engine can do.'),
  history: z
    .enum(['sampled', 'template'])
    .default('sampled')
    .describe('Keep the thinking that was sampled, or let the template strip it and fork.'),
  pin: z
    .strictObject({
      temperature: pinned('the temperature'),
      topP: pinned('top-p'),
      topK: pinned('top-k'),
      minP: pinned('min-p'),
      presencePenalty: pinned('the presence penalty'),
      frequencyPenalty: pinned('the frequency penalty'),
      repetitionPenalty: pinned('the repetition penalty'),
      maxTokens: pinned('the most tokens of an answer'),
      seed: pinned('the seed'),
    })
    .prefault({}),
  clamp: z
    .strictObject({
      maxTokens: positiveInt.optional().describe('Upper bound of the tokens of an answer.'),
      temperature: z.number().optional().describe('Upper bound of the temperature.'),
      n: positiveInt.optional().describe('Upper bound of the answers per call.'),
    })
    .prefault({}),
  defaults: z
    .strictObject({
      temperature: z.number().optional().describe('Temperature where the harness sets none.'),
      topP: z.number().optional().describe('Top-p where the harness sets none.'),
      maxTokens: positiveInt.optional().describe('Most tokens of an answer where the harness sets none.'),
    })
    .prefault({}),
  budget: z
    .strictObject({
      maxCalls: positiveInt.nullable().default(null).describe('Calls of a session; null: no limit.'),
      maxSampledTokens: positiveInt.nullable().default(null).describe('Sampled tokens of a session.'),
      maxWallMs: durationMs.nullable().default(null).describe('Time of a session from its opening.'),
    })
    .prefault({}),
  thinkingBudget: z
    .enum(['record', 'pass'])
    .default('record')
    .describe(
      'What becomes of a bound on thinking that a Messages or Gemini client asks for: recorded only, or told to the engine, which then forces tokens that were not sampled: vLLM (`thinking_token_budget`; it refuses without a reasoning parser) and SGLang with `--enable-strict-thinking` (`custom_params`); with others no session is opened.',
    ),
  topLogprobs: z
    .number()
    .int()
    .min(0)
    .max(20)
    .default(0)
    .describe(
      'Alternatives per sampled token that Paddock asks of the engine beside what the harness asks, at most 20: kept with the call and told to nobody, with the entropy that they show. Where a harness asks for logprobs itself, its own number stands; with an engine that gives none no session is opened.',
    ),
  inject: injections.default([]),
  onDisconnect: z
    .enum(['finish', 'abort'])
    .default('finish')
    .describe('What becomes of an engine call whose client went away.'),
})

/** Milliseconds of the stages of a rollout of which neither the run nor the task says anything. */
export const stageBudgets = {
  bootMs: 300_000,
  setupMs: 300_000,
  agentMs: 600_000,
  agentWallMs: 4 * 3_600_000,
  collectMs: 120_000,
  verifyMs: 600_000,
}

/** A run that says nothing leaves it to the task, so the default is only shown. */
const stageMs = (stage: keyof typeof stageBudgets, description: string) =>
  durationMs.optional().meta({ default: stageBudgets[stage], description })

/** Times of the stages of a rollout. */
export const budgetsSchema = z.strictObject({
  bootMs: stageMs('bootMs', 'Time to start a box.'),
  setupMs: stageMs('setupMs', 'Time to set a task up.'),
  agentMs: stageMs(
    'agentMs',
    'Time of the agent on its own clock: waiting for the model is not counted. If the task has a limit of its own, it replaces the default, and the shorter one holds where both are set.',
  ),
  agentWallMs: stageMs('agentWallMs', 'Time of the agent by the wall.'),
  collectMs: stageMs('collectMs', 'Time to take artifacts out of the box.'),
  verifyMs: stageMs('verifyMs', 'Time of the verifier; likewise.'),
})

const onCut = (end: string) =>
  z
    .enum(['verify', 'zero', 'mask', 'null'])
    .default('verify')
    .describe(
      `What a rollout is worth that ended as \`${end}\`: scored as it is, 0, scored but not trained, or without a number.`,
    )

export const groupSchema = z.strictObject({
  over: wholeInt.default(0).describe('Rollouts that are started beyond `run.n`.'),
  minUsable: wholeInt.default(1).describe('Below so many usable members a group settles as `failed`.'),
  stopAt: positiveInt
    .nullable()
    .default(null)
    .describe(
      'Usable members at which the others of a group are stopped; null: at `run.n` where more are started, else nobody is.',
    ),
  topUp: wholeInt.default(0).describe('Further rollouts that a group may start where members are not usable.'),
  deadlineMs: durationMs
    .nullable()
    .default(null)
    .describe('From the opening of a group until whoever is not done is left out; null: never.'),
  horizon: positiveInt.nullable().default(null).describe('Calls after which an agent is cut on purpose; null: none.'),
  inject: injections.optional(),
  onCut: z
    .strictObject({
      horizon: onCut('horizon'),
      budget: onCut('budget'),
      context_overflow: onCut('context_overflow'),
      agent_timeout: onCut('agent_timeout'),
    })
    .prefault({}),
})

const run = z.strictObject({
  n: positiveInt.default(1).describe('Rollouts per task: the size of a group.'),
  snapshotEvery: positiveInt
    .nullable()
    .default(null)
    .describe('Turns of an agent after which its box is kept, as `snapshot` events tell; null: it is not kept.'),
  atWeightUpdate: z
    .enum(['continue', 'shelve'])
    .default('continue')
    .describe(
      'Half-done rollouts while weights are moved: `continue` as the mode of the update says, or `shelve` them before it and resume them after it.',
    ),
  keepSnapshots: z
    .strictObject({
      most: wholeInt
        .default(0)
        .describe(
          'Of what `run.snapshotEvery` keeps, so many outlive their run; 0: all go with it. `paddock box kept` lists them.',
        ),
      mostMb: positiveInt
        .default(10_240)
        .describe('MB that those of a run may have added to their images; what would be more goes with the run.'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      boot: positiveInt.optional().describe('Boxes that start at once.'),
      agent: positiveInt.optional().describe('Agents that run at once.'),
      verify: positiveInt.optional().describe('Verifications at once.'),
    })
    .prefault({}),
  budgets: budgetsSchema.prefault({}),
  group: groupSchema.prefault({}),
})

/** A plugin: the object itself, an npm name, or a path relative to the configuration file. */
const plugin = z.union([z.string(), z.custom<object>((value) => typeof value === 'object' && value !== null)])

/** A harness preset without code, by its name in `harnesses`. */
const presetSchema = z.strictObject({
  npm: z
    .string()
    .regex(/^(@[^/@\s]+\/)?[^/@\s]+@\d+\.\d+\.\d+[^\s]*$/, 'Give package and exact version, like my-agent@1.2.3')
    .optional()
    .describe('npm package and exact version that the box gets, with a Node of its own; its programs are on the PATH.'),
  binary: z.string().min(1).optional().describe('Or: one program of this machine, relative to this file.'),
  run: z.string().min(1).optional().describe('Line for the shell of the box.'),
  again: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Line for the shell of the box that goes on with the last conversation: the prompt is what the user of the task says.',
    ),
  env: z.record(z.string(), z.string()).optional().describe('Further variables.'),
  pass: z
    .array(z.string().regex(/^[A-Za-z_]\w*\*?$/, 'Give the name of a variable, or how names begin, like HF_*'))
    .optional()
    .describe('Of `script` alone: variables of this machine that its command gets too.'),
  dialect: z.enum(['chat', 'responses', 'messages', 'gemini']).optional().describe('The wire API that it speaks.'),
  version: z
    .string()
    .regex(/^\d+\.\d+\.\d+[^\s]*$/, 'Give an exact version, like 1.2.3')
    .optional()
    .describe('Of a built-in preset alone: the version of its program.'),
})

/** What a preset without code says. */
export type PresetInput = z.output<typeof presetSchema>

export const configSchema = z.strictObject({
  engine: engine.prefault({}),
  engines: engines.prefault({}),
  policies,
  proxy: proxy.prefault({}),
  control: control.prefault({}),
  nodes: nodes.prefault({}),
  node: node.prefault({}),
  tls: tls.prefault({}),
  store: store.prefault({}),
  blobs: blobs.prefault({}),
  archive: archive.prefault({}),
  log: log.prefault({}),
  sandbox: sandbox.prefault({}),
  session: sessionSchema.prefault({}),
  environments: z.array(plugin).default([]).describe('Environment plugins: objects, npm names, or paths.'),
  gui: z
    .strictObject({
      apps: z
        .array(plugin)
        .default([])
        .describe('Applications of the environment `gui`, likewise. See docs/guides/gui-tasks.md.'),
      importers: z
        .array(plugin)
        .default([])
        .describe('Importers of gui tasks in other formats, likewise. See docs/guides/gui-formats.md.'),
    })
    .prefault({}),
  harnesses: z
    .union([z.array(plugin), z.record(z.string(), z.union([z.string(), presetSchema]))])
    .default([])
    .describe(
      'Harness presets, likewise; or an object of presets by name: an npm name or path of a plugin, or a preset without code (`npm` or `binary`, `run`, `env`, `dialect`), or `{version}` for a built-in one, `{env, pass}` for `script`. See docs/guides/harness-presets.md.',
    ),
  exporters: z.array(plugin).default([]).describe('Exporters, likewise.'),
  selectors: z
    .array(plugin)
    .default([])
    .describe('Selectors of `paddock export --select`, of `paddock run --select` and of feeds, likewise.'),
  tasks: z
    .strictObject({
      trust: z
        .boolean()
        .default(false)
        .describe(
          'Programs that tasks bring for this machine (modules of cua-bench, commands of sidecars and judges) are run, as you.',
        ),
      publicNetwork: z
        .enum(['refuse', 'without', 'open'])
        .default('refuse')
        .describe(
          'Terminal tasks that ask for the public internet, which is the default of their format: refused by name, run `without` any network, or given it (`open`).',
        ),
    })
    .prefault({}),
  run: run.prefault({}),
})

/** What a user writes: every key optional. */
export type ConfigInput = z.input<typeof configSchema>
/** What the program reads: every default filled in. */
export type Config = z.output<typeof configSchema>
/** A plugin as a configuration names it. */
export type PluginRef = string | object
