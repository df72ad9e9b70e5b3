import { z } from 'zod'
import {
  type Digest,
  type ErrorCode,
  generatedPlace,
  isPaddockError,
  PaddockError,
  sha256,
  type Task,
} from '../core/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type {
  Artifacts,
  BoxContext,
  BoxNeeds,
  CollectContext,
  Environment,
  GroupContext,
  LoadOptions,
  NamedScript,
  OutsideWork,
  TaskProof,
  TaskSteps,
  Tool,
  VerifyContext,
} from './contract.ts'
import { namedScriptSchema } from './run-script.ts'
import { taskAgentsSchema, type TaskAgentsSpec } from './agents.ts'
import { taskUserSchema, type TaskUserSpec } from './user.ts'
import { generatedTasks, type GeneratorSpec, readGenerated, taskGenerator } from './generate/index.ts'

/** A task whose data has been through the environment's schema. */
export type TaskOf<Data> = Omit<Task, 'data'> & { readonly data: Data }

type With<Context, Data> = Omit<Context, 'task'> & { readonly task: TaskOf<Data> }

/** What the author of an environment writes. Parts left out have the obvious meaning given here. */
export interface EnvironmentSpec<Data> {
  readonly name: string
  readonly apiVersion: 1
  readonly verifierVersion: string
  readonly task: z.ZodType<Data>
  load(path: string, o: LoadOptions): Promise<readonly Task[]>
  /** Make tasks of seeds and levels, beside those that `load` reads. Default: none. */
  readonly generators?: readonly GeneratorSpec<Data>[]
  box(task: TaskOf<Data>): BoxNeeds
  /** Default: null, and the box is made when it is asked for. */
  verifierBox?(task: TaskOf<Data>): BoxNeeds | null
  /** Default: nothing to set up. */
  setup?(context: With<BoxContext, Data>): Promise<void>
  /** Default: false. */
  readonly resumesFromFiles?: boolean
  tools(task: TaskOf<Data>): readonly Tool[]
  /** Default: null. */
  systemPrompt?(task: TaskOf<Data>): string | null
  /** Default: the task's instruction. */
  userPrompt?(task: TaskOf<Data>): string
  /** Default: null, every task is one step. */
  steps?(task: TaskOf<Data>): TaskSteps | null
  /** Default: null, nobody answers the agent. A task of several steps has no user. */
  user?(task: TaskOf<Data>): TaskUserSpec | null
  /** Default: null, one agent works at each task. A task of several agents has no steps and no user. */
  agents?(task: TaskOf<Data>): TaskAgentsSpec | null
  collect(context: With<CollectContext, Data>): Promise<Artifacts>
  /** May throw: a PaddockError of family infra becomes `infra_error`, anything else `unscorable`. */
  verify(context: With<VerifyContext, Data>): Promise<VerdictDraft>
  /** Default: null, only what was done here is verified. */
  outside?(task: TaskOf<Data>): OutsideWork | null
  /** Default: false. */
  isReadOnly?(task: TaskOf<Data>): boolean
  /** Default: nothing is kept. */
  keepProof?(task: TaskOf<Data>, proofs: ReadonlyMap<Digest, TaskProof>): Promise<void>
  /**
   * Scores rollouts of one group beside each other, a draft for each, in their order. May throw: then none of them has a
   * reward, because the one it got alone is not the one that was asked for. Default: no such reward.
   */
  scoreGroup?(context: With<GroupContext, Data>): Promise<readonly VerdictDraft[]>
  readonly scripts: {
    oracle(task: TaskOf<Data>): Promise<NamedScript>
    solutions?(task: TaskOf<Data>): Promise<readonly NamedScript[]>
    /** Default: says that it did nothing. */
    readonly nullAgent?: NamedScript
    cheats(task: TaskOf<Data>): Promise<readonly NamedScript[]>
    distractors?(task: TaskOf<Data>): Promise<readonly NamedScript[]>
  }
}

const callable = z.custom<unknown>((value) => typeof value === 'function', 'must be a function')
const shape = z.object({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
  apiVersion: z.literal(1, 'must be 1, the only version of the contract that this Paddock knows'),
  verifierVersion: z.string().min(1, 'must say the version of the verifier, such as "1"'),
  task: z.custom<unknown>((value) => value instanceof z.ZodType, 'must be a zod 4 schema of the task data'),
  load: callable,
  generators: z
    .array(
      z.object({
        name: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
        levels: z.int().min(1, 'must be at least 1'),
        generate: callable,
      }),
    )
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'must have names of their own')
    .optional(),
  box: callable,
  verifierBox: callable.optional(),
  setup: callable.optional(),
  tools: callable,
  systemPrompt: callable.optional(),
  userPrompt: callable.optional(),
  steps: callable.optional(),
  user: callable.optional(),
  agents: callable.optional(),
  collect: callable,
  verify: callable,
  outside: callable.optional(),
  isReadOnly: callable.optional(),
  keepProof: callable.optional(),
  scoreGroup: callable.optional(),
  scripts: z.object({
    oracle: callable,
    solutions: callable.optional(),
    nullAgent: z.object({ name: z.string() }).optional(),
    cheats: callable,
    distractors: callable.optional(),
  }),
})

const idle: NamedScript = { name: 'null-agent', weight: 1, script: { steps: [{ say: 'I have nothing to do here.' }] } }

/**
 * Makes an environment of its author's plain object. Throws `ENVIRONMENT_INVALID` naming the part and the fix.
 * Every method of the result parses `Task.data` first (`TASK_INVALID` when it does not fit), and `verify` keeps the
 * promise that no fault ever becomes a number.
 */
export function defineEnvironment<Data>(spec: EnvironmentSpec<Data>): Environment {
  const checked = shape.safeParse(spec)
  if (!checked.success) {
    const issue = checked.error.issues[0]
    const part = issue?.path.join('.') ?? ''
    throw new PaddockError('ENVIRONMENT_INVALID', `Environment ${String(spec.name)}: ${part} ${issue?.message ?? ''}`, {
      data: { environment: String(spec.name), part },
      fix: `Give defineEnvironment a ${part === '' ? 'plain object' : part} that fits: it ${issue?.message ?? ''}.`,
    })
  }
  const known = new WeakMap<Task, TaskOf<Data>>()
  const typed = (task: Task): TaskOf<Data> => {
    const before = known.get(task)
    if (before !== undefined) return before
    const parsed = parseTask(spec, task)
    known.set(task, parsed)
    return parsed
  }
  const check = (task: Task): void => void typed(task)
  const generators = (spec.generators ?? []).map((one) => taskGenerator(one, { environment: spec.name, check }))
  const typedContext = <C extends { readonly task: Task }>(context: C) => ({ ...context, task: typed(context.task) })
  return {
    name: spec.name,
    apiVersion: 1,
    verifierVersion: spec.verifierVersion,
    task: spec.task,
    generators,
    load: async (path, o = {}) => {
      const place = generatedPlace(path)
      if (place !== null) return generatedTasks(generators, place, { ...o, environment: spec.name })
      return (await readGenerated(path, { ...o, environment: spec.name, check })) ?? spec.load(path, o)
    },
    box: (task) => spec.box(typed(task)),
    verifierBox: (task) => spec.verifierBox?.(typed(task)) ?? null,
    setup: async (context) => spec.setup?.(typedContext(context)),
    resumesFromFiles: spec.resumesFromFiles ?? false,
    tools: (task) => spec.tools(typed(task)),
    systemPrompt: (task) => spec.systemPrompt?.(typed(task)) ?? null,
    userPrompt: (task) => spec.userPrompt?.(typed(task)) ?? task.instruction,
    steps: (task) => spec.steps?.(typed(task)) ?? null,
    user: (task) =>
      saidOf(spec, task, { part: 'user', schema: taskUserSchema, said: spec.user?.(typed(task)) ?? null }),
    agents: (task) =>
      saidOf(spec, task, { part: 'agents', schema: taskAgentsSchema, said: spec.agents?.(typed(task)) ?? null }),
    collect: async (context) => spec.collect(typedContext(context)),
    verify: (context) => guarded(spec, context, typed),
    outside: (task) => spec.outside?.(typed(task)) ?? null,
    keepProof: spec.keepProof === undefined ? null : async (task, proofs) => spec.keepProof?.(typed(task), proofs),
    isReadOnly: (task) => spec.isReadOnly?.(typed(task)) ?? false,
    scoreGroup:
      spec.scoreGroup === undefined ? null : async (context) => (await spec.scoreGroup?.(typedContext(context))) ?? [],
    scripts: {
      oracle: async (task) => scriptOf(task, 'oracle', await spec.scripts.oracle(typed(task))),
      solutions: async (task) => scriptsOf(task, 'solutions', await spec.scripts.solutions?.(typed(task))),
      nullAgent: { ...idle, ...spec.scripts.nullAgent },
      cheats: async (task) => scriptsOf(task, 'cheats', await spec.scripts.cheats(typed(task))),
      distractors: async (task) => scriptsOf(task, 'distractors', await spec.scripts.distractors?.(typed(task))),
    },
  }
}

function parseTask<Data>(spec: EnvironmentSpec<Data>, task: Task): TaskOf<Data> {
  const wrong = (code: ErrorCode, what: string, place: string) =>
    new PaddockError(code, `Task ${task.name}: ${what}`, { data: { task: task.name, environment: spec.name, place } })
  if (task.environment !== spec.name) {
    throw wrong('TASK_INVALID', `it belongs to environment ${task.environment}, not ${spec.name}`, 'environment')
  }
  const parsed = spec.task.safeParse(task.data)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') ?? ''
    throw wrong('TASK_INVALID', `its data does not fit: ${z.prettifyError(parsed.error)}`, `data.${place}`)
  }
  return { ...task, data: parsed.data }
}

/** What an environment says of a task's user or agents, with every default filled in. */
function saidOf<Data, Said>(
  { name }: EnvironmentSpec<Data>,
  task: Task,
  { part, schema, said }: { readonly part: string; readonly schema: z.ZodType<Said>; readonly said: unknown },
): Said | null {
  if (said === null) return null
  const parsed = schema.safeParse(said)
  if (parsed.success) return parsed.data
  throw new PaddockError(
    'TASK_INVALID',
    `Task ${task.name}: its ${part} does not fit: ${z.prettifyError(parsed.error)}`,
    {
      data: { task: task.name, environment: name, place: part },
    },
  )
}

/** A script with its defaults filled in. Throws `TASK_INVALID` naming script and key. */
function scriptOf(task: Task, part: string, given: NamedScript): NamedScript {
  const parsed = namedScriptSchema.safeParse(given)
  if (parsed.success) return { ...given, weight: parsed.data.weight }
  const place = `scripts.${part}.${parsed.error.issues[0]?.path.join('.') ?? ''}`
  const what = `Task ${task.name}: the script ${JSON.stringify(given?.name)} of scripts.${part} does not fit`
  throw new PaddockError('TASK_INVALID', `${what}: ${z.prettifyError(parsed.error)}`, {
    data: { task: task.name, environment: task.environment, place },
  })
}

function scriptsOf(task: Task, part: string, given: readonly NamedScript[] = []): readonly NamedScript[] {
  return given.map((one) => scriptOf(task, part, one))
}

async function guarded<Data>(
  spec: EnvironmentSpec<Data>,
  context: VerifyContext,
  typed: (task: Task) => TaskOf<Data>,
): Promise<VerdictDraft> {
  context.signal.throwIfAborted()
  try {
    return await spec.verify({ ...context, task: typed(context.task) })
  } catch (error) {
    if (context.signal.aborted) throw context.signal.reason
    const verifier = {
      id: spec.name,
      version: spec.verifierVersion,
      sha256: sha256(`${spec.name}\0${spec.verifierVersion}`),
    }
    const infra = isPaddockError(error) && error.family === 'infra'
    const reason = isPaddockError(error) ? error.line() : `The verifier threw: ${String(error)}`
    return unscored(infra ? 'infra_error' : 'unscorable', reason, { verifier, trust: 'separate' })
  }
}
