import { z } from 'zod'

/**
 * Harbor's `task.toml`, schema 1.4 (Harbor 0.24, `src/harbor/models/task/config.py`), as far as its keys are known;
 * features that are known and not supported are read here and refused by name in `support.ts`. Unknown keys are errors:
 * a misspelt limit must not silently become the default. `[task]` and `[metadata]` only describe, and may hold any.
 */
const user = z.union([z.string().min(1), z.int().min(0)]).transform(String)
const env = z.record(z.string(), z.string())
const seconds = z.number().positive()
const absolutePath = z
  .string()
  .regex(/^\/[^\0]*$/, 'must be an absolute path')
  .refine((path) => !path.split('/').includes('..'), 'must not contain ..')
const networkMode = z.enum(['public', 'no-network', 'allowlist'])

const healthcheck = z.strictObject({
  command: z.string().min(1),
  interval_sec: seconds.default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().min(0).default(0),
  start_interval_sec: seconds.default(5),
  retries: z.int().min(1).default(3),
})

const environment = z.strictObject({
  build_timeout_sec: seconds.optional(),
  docker_image: z.string().min(1).optional(),
  definition: z.unknown().optional(),
  os: z.string().optional(),
  cpus: z.number().positive().optional(),
  memory_mb: z.int().positive().optional(),
  storage_mb: z.int().positive().optional(),
  memory: z.string().optional(),
  storage: z.string().optional(),
  gpus: z.int().min(0).optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  allow_internet: z.boolean().optional(),
  network_mode: networkMode.optional(),
  allowed_hosts: z.array(z.string()).optional(),
  mcp_servers: z.array(z.unknown()).optional(),
  env: env.optional(),
  skills_dir: z.string().optional(),
  healthcheck: healthcheck.optional(),
  workdir: absolutePath.optional(),
})

const artifact = z.union([
  absolutePath,
  z.strictObject({
    source: absolutePath,
    destination: z.string().optional(),
    exclude: z.array(z.string().min(1)).optional(),
    service: z.string().optional(),
  }),
])

const collectHook = z.strictObject({
  command: z.string().min(1),
  service: z.string().optional(),
  timeout_sec: seconds.default(60),
  user: user.optional(),
  env: env.optional(),
})

const phaseNetwork = { network_mode: networkMode.optional(), allowed_hosts: z.array(z.string()).optional() }

const agent = z.strictObject({ timeout_sec: seconds.optional(), user: user.optional(), ...phaseNetwork })

/** `[[steps]]`; what it leaves out is the task's. `dependencies` and `inherit_prior_session` are a dialect of published multi-turn sets. */
const step = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'must be a folder name of letters, digits, dots, dashes'),
  dependencies: z.array(z.string()).optional(),
  inherit_prior_session: z.boolean().optional(),
  agent: agent.default({}),
  verifier: z
    .strictObject({
      timeout_sec: seconds.optional(),
      env: env.optional(),
      user: user.optional(),
      environment_mode: z.enum(['shared', 'separate']).optional(),
      environment: z.unknown().optional(),
      collect: z.array(collectHook).default([]),
      ...phaseNetwork,
    })
    .prefault({}),
  /** A number means the key `reward`. */
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: healthcheck.optional(),
  artifacts: z.array(artifact).default([]),
})

export const taskTomlSchema = z.strictObject({
  schema_version: z.string().optional(),
  version: z.string().optional(),
  source: z.string().optional(),
  task: z
    .looseObject({
      name: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'must have the form org/name'),
      version: z.string().optional(),
      description: z.string().optional(),
      authors: z.array(z.looseObject({ name: z.string(), email: z.string().optional() })).optional(),
      keywords: z.array(z.string()).optional(),
    })
    .optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  agent: agent.default({}),
  verifier: z
    .strictObject({
      timeout_sec: seconds.default(600),
      env: env.optional(),
      user: user.optional(),
      environment_mode: z.enum(['shared', 'separate']).optional(),
      environment: environment.optional(),
      collect: z.array(collectHook).default([]),
      ...phaseNetwork,
    })
    .prefault({}),
  environment: environment.default({}),
  solution: z.strictObject({ env: env.optional() }).default({}),
  artifacts: z.array(artifact).default([]),
  steps: z.array(step).default([]),
  multi_step_reward_strategy: z.enum(['mean', 'final']).optional(),
})

/** A `task.toml` that has the shape of the format. */
export type TaskToml = z.infer<typeof taskTomlSchema>
/** One of `[[steps]]`. */
export type StepToml = TaskToml['steps'][number]
/** `[environment]` or `[verifier.environment]`. */
export type EnvironmentToml = TaskToml['environment']
