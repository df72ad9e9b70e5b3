import { z } from 'zod'

const image = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('dockerfile'),
    dockerfile: z.string(),
    directory: z.enum(['environment', 'tests']),
    /** Left out: no bound of the task's own. */
    buildTimeoutMs: z.number().optional(),
  }),
  z.object({ kind: z.literal('reference'), reference: z.string() }),
])

const network = z.union([z.literal('none'), z.literal('open'), z.object({ allow: z.array(z.string()) })])

const boxData = z.object({
  image,
  /** Null: the image's own. */
  workdir: z.string().nullable(),
  env: z.record(z.string(), z.string()),
  cpus: z.number(),
  memoryMb: z.number(),
  storageMb: z.number(),
  network,
})

const healthcheck = z
  .object({
    command: z.string(),
    intervalMs: z.number(),
    timeoutMs: z.number(),
    startPeriodMs: z.number(),
    startIntervalMs: z.number(),
    retries: z.number(),
  })
  .nullable()

/** `.` is the work directory of the box, where the image alone knows it. */
const artifacts = z.array(z.object({ source: z.string(), exclude: z.array(z.string()) }))

const collect = z.array(
  z.object({
    command: z.string(),
    timeoutMs: z.number(),
    user: z.string().nullable(),
    env: z.record(z.string(), z.string()),
  }),
)

/** What a step has of its own; the rest is its task's. */
const stepData = z.object({
  name: z.string(),
  instruction: z.string(),
  agent: z.object({ user: z.string().nullable(), timeoutMs: z.number().nullable(), healthcheck }),
  verifier: z.object({ env: z.record(z.string(), z.string()), user: z.string().nullable(), timeoutMs: z.number() }),
  artifacts,
  collect,
  /** By name of what the step's verifier measures; below any of them the task ends with this step. */
  minReward: z.record(z.string(), z.number()),
  digest: z.string(),
})

/** A file of the folder of a task that carries it. */
const carriedFile = z.object({
  /** Below the folder, as the format has it (`tests/test.sh`); `workdir/` is what the agent finds in its work directory. */
  path: z.string().regex(/^(?!.*(^|\/)\.{0,2}(\/|$))[^\0]+$/, 'must be a path below the folder of the task'),
  text: z.string(),
  executable: z.literal(true).optional(),
})

/**
 * `Task.data` of a terminal task: what its folder says, with every default filled in. Times in milliseconds, sizes in
 * MB. Files stay in the folder (`Task.source`) and stand here by digest, so that another file is another task; a task that was generated
 * has no folder and carries them.
 */
export const terminalDataSchema = z.object({
  agent: boxData.extend({
    /** While the task is set up, where that differs. */
    setupNetwork: network.optional(),
    profile: z.enum(['user', 'root']),
    user: z.string().nullable(),
    timeoutMs: z.number().nullable(),
    healthcheck,
  }),
  verifier: boxData.extend({
    user: z.string().nullable(),
    timeoutMs: z.number(),
    /** False when the verifier's own image holds `/tests`. */
    uploadTests: z.boolean(),
    /** On all files that the agent left, in place of a fresh image with the artifacts. Left out: false. */
    shared: z.literal(true).optional(),
  }),
  artifacts,
  /** Name of the step that this task is, of a task of several. */
  step: z.string().optional(),
  /** Steps that are worked on and verified one after the other in one box. Left out: the task is one step. */
  steps: z.array(stepData).optional(),
  /** How the rewards of steps become the task's. */
  rewardOfSteps: z.enum(['mean', 'final']).optional(),
  collect,
  /** Files and directories that the agent may not change. Left out: none. */
  protected: z.array(z.string()).optional(),
  /** Files and directories beside the work directory that are the agent's to change. Left out: none. */
  mayChange: z.array(z.string()).optional(),
  solutionEnv: z.record(z.string(), z.string()),
  digests: z.object({ environment: z.string(), tests: z.string() }),
  /** All files of the task, sorted by path, where no folder has them. Left out: the folder does. */
  files: z.array(carriedFile).optional(),
  metadata: z.record(z.string(), z.unknown()),
})

/** Parsed {@link terminalDataSchema}. */
export type TerminalData = z.infer<typeof terminalDataSchema>
/** One of {@link TerminalData.files}. */
export type CarriedFile = z.infer<typeof carriedFile>
/** One of {@link TerminalData.steps}. */
export type StepData = z.infer<typeof stepData>
