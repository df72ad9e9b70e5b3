import { type Digest, isPaddockError, newId, PaddockError, sha256, type Task } from '../core/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { Box, BoxRole, EgressGate, EgressPolicy, SandboxProvider } from '../sandbox/index.ts'
import type { TaskAgents } from './agents.ts'
import type {
  Artifacts,
  Attempt,
  Environment,
  NamedScript,
  ScriptStep,
  TaskProof,
  TaskSteps,
  VerifyContext,
} from './contract.ts'
import { openTaskBox, verifierBoxes } from './open-box.ts'
import { type RanStep, runScript } from './run-script.ts'
import { wholeVerdict } from './steps.ts'

export interface AttemptOptions {
  readonly environment: Environment
  readonly task: Task
  readonly script: NamedScript
  readonly sandbox: SandboxProvider
  readonly signal: AbortSignal
  readonly onProgress?: (line: string) => void
  /** By digest of a task or step; left out: what the environment kept. */
  readonly proofs?: ReadonlyMap<Digest, TaskProof>
  /** The script is the task's own solution: told how it can be verified. */
  readonly onProof?: VerifyContext['onProof']
  /** Told of what the script's steps came to. */
  readonly onRan?: (steps: readonly RanStep[]) => void
}

/**
 * One script from box to verdict: box, set-up, steps, artifacts, verification; the way of a rollout without a model.
 * Faults of the sandbox give `infra_error`; rejects only with the signal's reason.
 */
export async function attempt(o: AttemptOptions): Promise<VerdictDraft> {
  try {
    const steps = o.environment.steps(o.task)
    return steps === null
      ? await verified(o, o.task, await inBox(o, (box, tried) => ran(o, o.task, o.script, box, tried)))
      : await inBox(o, (box, tried) => throughSteps(o, steps, box, tried))
  } catch (error) {
    if (o.signal.aborted) throw o.signal.reason
    const infra = isPaddockError(error) && error.family === 'infra'
    const reason = isPaddockError(error) ? error.line() : String(error)
    const { name, verifierVersion } = o.environment
    const verifier = { id: name, version: verifierVersion, sha256: sha256(`${name}\0${verifierVersion}`) }
    return unscored(infra ? 'infra_error' : 'unscorable', reason, { verifier, trust: 'separate' })
  }
}

/** Each step is verified before the next; the box stands still meanwhile. */
async function throughSteps(o: AttemptOptions, steps: TaskSteps, box: Box, tried: Attempt): Promise<VerdictDraft> {
  const scripts = [o.script, ...(o.script.later ?? [])]
  const drafts: VerdictDraft[] = []
  for (const [index, task] of steps.tasks.entries()) {
    await box.thaw()
    await o.environment.setup({ task, attempt: tried, box, signal: o.signal, emit: () => undefined })
    const draft = await verified(o, task, await ran(o, task, scripts[index] ?? idle, box, tried))
    drafts.push(draft)
    if (!steps.goesOn(index, draft)) break
  }
  return wholeVerdict(steps, drafts)
}

const idle: NamedScript = { name: 'idle', weight: 1, script: { steps: [] } }

async function inBox<T>(o: AttemptOptions, work: (box: Box, tried: Attempt) => Promise<T>): Promise<T> {
  const tried = { id: newId() }
  await using box = await openSetUpBox(o, tried, 'oracle')
  return await work(box, tried)
}

/** A box in which a task is set up, as its agent finds it. Whoever calls disposes. Throws what the provider and the environment throw. */
export async function openSetUpBox(
  o: Pick<AttemptOptions, 'environment' | 'task' | 'sandbox' | 'signal' | 'onProgress'>,
  tried: Attempt,
  role: BoxRole,
): Promise<Box> {
  const { environment, task, signal } = o
  const needs = environment.box(task)
  let gate: EgressGate | null = null
  const box = await openTaskBox(o.sandbox, needs, {
    signal,
    onGate: (made) => void (gate = made),
    labels: { role },
    ...(o.onProgress === undefined ? {} : { onProgress: o.onProgress }),
  })
  try {
    await environment.setup({ task, attempt: tried, box, signal, emit: () => undefined })
    limitTo(gate, needs.network)
    return box
  } catch (error) {
    await box[Symbol.asyncDispose]()
    throw error
  }
}

async function ran(o: AttemptOptions, task: Task, script: NamedScript, box: Box, tried: Attempt): Promise<Artifacts> {
  const { environment, signal } = o
  const context = { task, attempt: tried, box, signal, emit: () => undefined }
  for (const { directory, from } of script.files ?? []) await box.putFiles(directory, from)
  const agents = environment.agents(task)
  const acts = agents === null ? script.script.steps.map((step) => ({ step })) : inTurns(agents, script)
  const steps = await runScript({ ...context, environment, script: { steps: acts.map(({ step }) => step) } })
  o.onRan?.(steps)
  const last = acts.at(-1)?.step
  const said = last !== undefined && 'say' in last ? last.say : null
  // No user answers a script; what it says is what one would have heard.
  const talk = acts.flatMap(({ step, ...whose }) =>
    'say' in step ? [{ by: 'agent' as const, ...whose, text: step.say }] : [],
  )
  return await environment.collect({
    ...context,
    lastSaid: () => Promise.resolve(said),
    ...(environment.user(task) === null && agents === null ? {} : { talk: () => Promise.resolve(talk) }),
  })
}

/**
 * The scripts of several agents as they take turns: each goes on until it says something. One that only says something, as
 * whoever does nothing does, is of each of them. Throws `TASK_INVALID` for other steps that are no agent's.
 */
function inTurns(
  { agents }: TaskAgents,
  { name: its, agents: scripts = {}, script: { steps: alone } }: NamedScript,
): readonly { readonly step: ScriptStep; readonly agent: string }[] {
  const known = agents.map(({ name }) => name)
  const wrong = Object.keys(scripts).find((name) => !known.includes(name))
  const isOfEach = Object.keys(scripts).length === 0 && alone.every((step) => 'say' in step)
  if (wrong !== undefined || (alone.length > 0 && !isOfEach)) {
    const what = wrong === undefined ? 'has steps of no agent' : `has steps of ${wrong}, which is no agent of the task`
    throw new PaddockError('TASK_INVALID', `The script ${its} ${what}.`, {
      fix: `Give each of ${known.join(', ')} its own in \`agents\`.`,
    })
  }
  const left = agents.map(({ name }) => ({
    agent: name,
    steps: [...(isOfEach ? alone : (scripts[name]?.steps ?? []))],
  }))
  const acts: { readonly step: ScriptStep; readonly agent: string }[] = []
  while (left.some(({ steps }) => steps.length > 0)) {
    for (const { agent, steps } of left) {
      const end = steps.findIndex((step) => 'say' in step)
      for (const step of steps.splice(0, end === -1 ? steps.length : end + 1)) acts.push({ step, agent })
    }
  }
  return acts
}

async function verified(o: AttemptOptions, task: Task, artifacts: Artifacts): Promise<VerdictDraft> {
  await using _filesystem = artifacts.filesystem ?? null
  const { environment, sandbox, signal } = o
  const openBox = verifierBoxes(sandbox, { labels: {}, signal })
  return await environment.verify({
    task,
    artifacts,
    openBox,
    signal,
    emit: () => undefined,
    ...(o.proofs === undefined ? {} : { proof: o.proofs.get(task.digest) ?? null }),
    ...(o.onProof === undefined ? {} : { onProof: o.onProof }),
  })
}

/** What only the set-up may reach is out of reach from now on. */
function limitTo(gate: EgressGate | null, network: EgressPolicy): void {
  gate?.set(network)
}
