import type { z } from 'zod'
import type { Digest, EventBody, Id, PaddockError, Task, Verdict } from '../core/index.ts'
import type { FindJudgeServer, ToolCallFact, VerdictDraft } from '../reward/index.ts'
import type {
  Artifact,
  Box,
  BoxProfile,
  EgressPolicy,
  FileTree,
  ImageRecipe,
  PutFile,
  Snapshot,
} from '../sandbox/index.ts'
import type { TaskGenerator } from './generate/contract.ts'
import type { Deferral } from './deferral.ts'
import type { TaskAgents } from './agents.ts'
import type { Said, TaskUser } from './user.ts'

/**
 * How a set of tasks is set up, which tools exist and how an attempt is verified. Made by {@link defineEnvironment},
 * which checks the plain object of the author and closes over its task schema, so that callers see this shape only.
 * `environmentContract` (src/testing/environment) is what every environment passes.
 */
export interface Environment {
  /** Lower case, digits and dashes; what `Task.environment` names. */
  readonly name: string
  readonly apiVersion: 1
  /** Changes whenever the same artifacts could get another verdict; part of every verdict. */
  readonly verifierVersion: string
  /** Schema of `Task.data`. */
  readonly task: z.ZodType
  /** Make tasks of seeds and levels; empty: all of its tasks are written by hand. */
  readonly generators: readonly TaskGenerator[]
  /**
   * Reads the tasks below `path`: one task or a directory of tasks, sorted by name; or those of `<generator>:<seeds>:<levels>`, or of a
   * file that `paddock generate` wrote.
   * Throws `TASK_INVALID` or `TASK_UNSUPPORTED`, with file, place and fix; never loads a part of a broken set unless
   * `o.onRefused` is told of each task that is left out.
   */
  load(path: string, o?: LoadOptions): Promise<readonly Task[]>
  /** What the agent's box must be. Pure. */
  box(task: Task): BoxNeeds
  /** What the box of its verifier will be, so that it may be made ahead; null: nothing is known or needed. Pure. */
  verifierBox(task: Task): BoxNeeds | null
  /** Brings a fresh box into the task's starting state. Throws for infra faults only. */
  setup(context: BoxContext): Promise<void>
  /**
   * A copy of a box's files is a place to go on from: set-up may run again over it, and nothing of an attempt stands elsewhere, such as in
   * a process of the host. What such copies are made for: forks by `state` and `graft`.
   */
  readonly resumesFromFiles: boolean
  /** The tools of the task: offered to the reference agent as schemas, to a harness in the box as an MCP server. */
  tools(task: Task): readonly Tool[]
  /** Null when the environment has nothing to say beyond the instruction. */
  systemPrompt(task: Task): string | null
  userPrompt(task: Task): string
  /**
   * The parts of a task whose agent is asked several times in one box, each part verified before the next; null where it
   * is asked once. Set-up of the task itself comes first, then for each part set-up, agent, collection, verification.
   */
  steps(task: Task): TaskSteps | null
  /** Who answers the agent between its turns; null: nobody does. Pure. */
  user(task: Task): TaskUser | null
  /** The agents that a task needs, where one is not enough; null: it is. Pure. */
  agents(task: Task): TaskAgents | null
  /**
   * Takes what the verifier needs out of the agent's box. Ends the box's background work and freezes it: call it once,
   * after the agent phase. Never throws for what the agent left there; throws for infra faults.
   */
  collect(context: CollectContext): Promise<Artifacts>
  /**
   * Scores artifacts in fresh boxes. Resolves for every fault with a draft whose reward is null (`infra_error`,
   * `unscorable`); rejects only with the signal's reason.
   */
  verify(context: VerifyContext): Promise<VerdictDraft>
  /**
   * How work at the task that was done elsewhere is verified here; null: only what was done here is. Pure. Throws `TASK_UNSUPPORTED` where
   * it is this task that cannot be.
   */
  outside(task: Task): OutsideWork | null
  /** Keeps what validation has found out about a task and its steps, by digest, for verifications to come. Null: there is nothing to keep. */
  readonly keepProof: ((task: Task, proofs: ReadonlyMap<Digest, TaskProof>) => Promise<void>) | null
  /** Whether the task asks for nothing to be changed; what tries to is then told by the audit. */
  isReadOnly(task: Task): boolean
  /**
   * Scores the members of a group beside each other, once all have ended: what only a comparison can tell. Null where the
   * environment has no such reward.
   */
  readonly scoreGroup: ((context: GroupContext) => Promise<readonly VerdictDraft[]>) | null
  readonly scripts: EnvironmentScripts
}

/** Rollouts of one group that have numbers of their own, in the order of their slots. */
export interface GroupContext {
  readonly task: Task
  readonly members: readonly GroupMember[]
  readonly signal: AbortSignal
}

export interface GroupMember {
  readonly rolloutId: Id
  /** What it got by itself. */
  readonly verdict: Verdict & { readonly reward: number }
  readonly artifacts: Artifacts
}

export interface LoadOptions {
  readonly signal?: AbortSignal
  /**
   * Told of each task of a directory that cannot be used, by its name, in place of an error for the whole. An environment
   * that cannot tell its tasks apart before it has read them all may throw all the same.
   */
  readonly onRefused?: (name: string, error: unknown) => void
}

/** A task of several parts. Each part is a task of its own: instruction, budgets, tools, scripts. Pure. */
export interface TaskSteps {
  readonly tasks: readonly Task[]
  /** Whether the part after this one is to be worked on. */
  goesOn(index: number, draft: VerdictDraft): boolean
  /** The verdict on the whole, of the drafts on the parts that were verified. */
  rollUp(drafts: readonly VerdictDraft[]): VerdictDraft
}

/** What a box must be for a task. {@link openTaskBox} turns it into a running box. */
export interface BoxNeeds {
  readonly image: ImageRecipe
  readonly profile: BoxProfile
  /** Default directory of commands; null: what the image says. */
  readonly workdir: string | null
  /** Whom the agent's commands run as; null: the box's own user. */
  readonly user: string | null
  /** Its image is somebody else's: where `user` is null, what it says counts, and one with an entry point is refused. */
  readonly heedsImage?: true
  readonly env: Readonly<Record<string, string>>
  readonly cpus?: number
  readonly memoryMb?: number
  readonly pids?: number
  /** Largest file a command may write, in MB. */
  readonly fileMb?: number
  /** What all files of the box may take together beyond its image, in MB. */
  readonly diskMb?: number
  /** What the box may reach beside its model path while it is worked in. */
  readonly network: EgressPolicy
  /** The same while its task is set up. Default: no difference. */
  readonly setupNetwork?: EgressPolicy
  /** Budget of the agent phase that the task asks for, in milliseconds; null: the run's default. */
  readonly agentTimeoutMs: number | null
  /** Budget of verification, likewise. */
  readonly verifyTimeoutMs: number | null
}

/**
 * One try at a task, from set-up to collection: the same object in all of its contexts. `perAttempt` keeps state by it.
 */
export interface Attempt {
  /** The rollout; where a task is validated, an id of its own. */
  readonly id: Id
}

export interface BoxContext {
  readonly task: Task
  readonly attempt: Attempt
  /** Step of the training that the rollout is made for, for what changes over one; absent or null: nobody said. */
  readonly trainingStep?: number | null
  readonly box: Box
  readonly signal: AbortSignal
  readonly emit: (event: EventBody) => void
}

/** What collection is told beside. */
export interface CollectContext extends BoxContext {
  /**
   * The text that the agent's conversation ended with, without reasoning; null where it ended with a tool call, or the model
   * said nothing. Absent: nobody recorded it.
   */
  readonly lastSaid?: () => Promise<string | null>
  /**
   * What the agent and the user of the task said to each other, in order, with the agent's last words; or what agents that take turns did.
   * Absent: nobody recorded it, or the task has neither.
   */
  readonly talk?: () => Promise<readonly Said[]>
}

/** How a task can be verified, as runs of its own solution have shown. */
export interface TaskProof {
  /** The solution scores 1 in a fresh box that gets nothing but the work. */
  readonly transplant: boolean
  /** Ids of the tests that the solution passed each time. Empty: its tests have none. */
  readonly tests: readonly string[]
}

export interface VerifyContext {
  readonly task: Task
  readonly artifacts: Artifacts
  /** What validation has found out about the task. Null: nothing. Left out: what the environment kept of it. */
  readonly proof?: TaskProof | null
  /**
   * The work is that of the task's own solution, and is verified in each way that there is. Told once for each task or step, with its digest. Left
   * out: it is anybody's work.
   */
  readonly onProof?: (digest: Digest, proof: TaskProof) => void
  /** What became of the tools that the agent called, in order; absent where nobody recorded them. */
  readonly toolCalls?: readonly ToolCallFact[]
  /** Opens a fresh box of role `verifier`; whoever opens it disposes it. */
  readonly openBox: (needs: BoxNeeds) => Promise<Box>
  /** Where a judge is asked on the record, for `judge.score`; absent: the configuration names no judge. */
  readonly judge?: FindJudgeServer
  readonly signal: AbortSignal
  readonly emit: (event: EventBody) => void
}

/** What was taken out of the agent's box, by declared path. */
export interface Artifacts {
  readonly items: readonly ArtifactItem[]
  /**
   * All files of the agent's box, where the task is verified on them (`shared`). The collector removes it after the last try at a verdict.
   * Later the same is made of what stands among the items, where that was not too much to keep.
   */
  readonly filesystem?: Snapshot
}

export interface ArtifactItem {
  /** Absolute path in the box. */
  readonly path: string
  readonly content: Artifact
}

/** Work that was done elsewhere, as the verifier of a task takes it. */
export interface OutsideWork {
  /** Files and directories that may be brought: absolute paths in a box. */
  readonly places: readonly string[]
  /** What {@link Environment.verify} gets. Throws `WORK_REFUSED` for what is no work at this task. */
  artifacts(brought: BroughtWork): Artifacts
}

/** What somebody brought: files at the places of an {@link OutsideWork}, an answer in words, or both. */
export interface BroughtWork {
  readonly items: readonly ArtifactItem[]
  readonly answer: string | null
}

/** An artifact item as one blob: a tar with sorted entries and zeroed times, so that equal files give equal bytes. */
export interface PackedArtifact {
  readonly path: string
  readonly sha256: Digest
  readonly sizeBytes: number
  readonly data: Uint8Array
}

/** One definition, two faces: tool schema of the reference agent, and MCP server on the model path of a harness in the box. */
export interface Tool {
  /** `[a-z][a-z0-9_]*`. */
  readonly name: string
  readonly description: string
  /**
   * How a model that writes its calls as text is told to use this tool, with what its words mean; what it wrote is then the
   * argument `text`. Left out: the tool takes no text.
   */
  readonly spoken?: string
  /** Schema of the arguments, an object. */
  readonly input: z.ZodType
  /** JSON schema of {@link input}, as chat APIs take it. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** True: a harness in the box has the like of it by itself (a shell), so it is not offered over MCP. */
  readonly nativeToHarness?: true
  /** Says of a call, whose arguments fit, that it is answered later; null: at once. Absent: all are. */
  readonly deferred?: (context: ToolContext, input: unknown) => Deferral | null
  /**
   * Runs the tool. Arguments that do not fit give status `error` with the place; rejects only with the signal's reason.
   * `infra`: the box or the tool's service failed, nothing can be said of the agent.
   */
  run(context: ToolContext, input: unknown): Promise<ToolOutcome>
}

export interface ToolContext {
  readonly task: Task
  readonly attempt: Attempt
  readonly box: Box
  readonly signal: AbortSignal
}

export interface ToolOutcome {
  readonly status: 'ok' | 'error' | 'timeout' | 'infra'
  /** What the model reads. Bounded by the tool. */
  readonly text: string
  /** What the model sees beside the text. They are stored by their digest. */
  readonly pictures?: readonly ToolPicture[]
  /** With `infra`: what failed, where it is not the box. */
  readonly fault?: PaddockError
  /** How the work went, for its event only: the model is not told. */
  readonly facts?: Readonly<Record<string, number | string>>
  /**
   * Parts of the reward as they are known with this call, by name: finite numbers, the last of a name stands. The model is not told, and the
   * verdict is the verifier's all the same. Left out: nothing is known so far.
   */
  readonly rewards?: Readonly<Record<string, number>>
}

/** A picture that a tool gives. */
export interface ToolPicture {
  readonly mediaType: 'image/png' | 'image/jpeg'
  readonly data: Uint8Array
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** Abstract steps of an agent; the JSON that the scripted engine takes. */
export interface Script {
  readonly steps: readonly ScriptStep[]
}

export type ScriptStep =
  /** A line for whichever tool has a string parameter `command` or `cmd`. */
  | { readonly shell: string }
  | { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }
  | { readonly say: string }
  | { readonly think: string }
  | { readonly parallel: readonly ScriptStep[] }

export interface NamedScript {
  readonly name: string
  /** Relative weight among the candidates of a scripted engine. */
  readonly weight: number
  readonly script: Script
  /** Of a task of several agents: what each does, by its name; `script` is empty then. */
  readonly agents?: Readonly<Record<string, Script>>
  /** Files that stand in the box before the first step; only validation has such scripts. */
  readonly files?: readonly { readonly directory: string; readonly from: FileTree | readonly PutFile[] }[]
  /** What runs in the steps after the first; nothing in those that are left out. */
  readonly later?: readonly NamedScript[]
}

/** What proves that a task can be solved, and cannot be cheated. Validation and the scripted engine run these. */
export interface EnvironmentScripts {
  /** Scores 1. */
  oracle(task: Task): Promise<NamedScript>
  /** Further scripts that score 1: the task's own solution script. */
  solutions(task: Task): Promise<readonly NamedScript[]>
  /** Does nothing; scores 0. */
  readonly nullAgent: NamedScript
  /** Known hacks; each scores 0 (`scored` or `hacked`). */
  cheats(task: Task): Promise<readonly NamedScript[]>
  /** Honest attempts that fail; each scores less than 1. */
  distractors(task: Task): Promise<readonly NamedScript[]>
}
