/** Tasks, runs, groups, rollouts, verdicts, fingerprints, token texts, verifications. */
import type {
  Digest,
  EngineFingerprint,
  Id,
  RolloutEnd,
  StoredArtifact,
  Task,
  Verdict,
  VerdictDraft,
} from '../../core/index.ts'
import type { ArchivedRecord } from './archive.ts'
import type { MemoryPage, MemoryQuery } from './memory.ts'
import type { RoundRecord, RoundView, RunEvent, SettledRound, SlotRecord } from './group.ts'

export interface RunRecord {
  readonly id: Id
  readonly name: string
  readonly createdAt: number
  /** The parsed configuration of the run, JSON. */
  readonly config: unknown
}

/** True for a run that only evaluates: nothing of it is ever trained. */
export function isEval({ config }: RunRecord): boolean {
  return typeof config === 'object' && config !== null && 'eval' in config
}

/** A policy of a run with several. */
export interface RunPolicy {
  readonly name: string
  readonly trained: boolean
}

/** The policies of a run, the first one first; none where there is one without a name. */
export function policiesOf({ config }: Pick<RunRecord, 'config'>): readonly RunPolicy[] {
  if (typeof config !== 'object' || config === null || !('policies' in config)) return []
  // Whoever opens a run writes this key.
  return config.policies as readonly RunPolicy[]
}

/** Of them those that are trained. */
export function trainedPolicies(run: Pick<RunRecord, 'config'>): readonly string[] {
  return policiesOf(run).flatMap(({ name, trained }) => (trained ? [name] : []))
}

/** The harness of what was imported: nothing of it was sampled here. */
export const importedHarness = 'imported'

/** The harness of what was made of recorded rollouts by putting other messages in the place of some: nothing of it was sampled so. */
export const rewrittenHarness = 'rewritten'

/** Rollouts of the same task digest and prompt variant. */
export interface GroupRecord {
  readonly id: Id
  readonly runId: Id
  readonly taskDigest: Digest
  readonly promptVariant: string
  readonly createdAt: number
}

/** Which rollouts; all that is left out holds for any. */
export interface RolloutFilter {
  readonly runId?: Id
  readonly groupId?: Id
  readonly slots?: readonly number[]
  readonly taskDigest?: Digest
  readonly ids?: readonly Id[]
  /** Those that were made after this one. */
  readonly after?: Id
  /** The newest first, from the one that was made before this one; null: from the newest of all. */
  readonly before?: Id | null
  readonly limit?: number
}

/** One attempt: (run, group, slot, attempt). */
export interface RolloutRecord {
  readonly id: Id
  readonly runId: Id
  readonly groupId: Id
  readonly slot: number
  readonly attempt: number
  readonly harness: string
  readonly createdAt: number
}

/** What the agent's part of a rollout came to: all that its verification needs. Stored before anything waits for a verifier. */
export interface RolloutWork {
  /** When the agent was done. Milliseconds since the epoch. */
  readonly at: number
  /** How the rollout ends once it is verified. */
  readonly end: RolloutEnd
  readonly detail: string
  /** What the harness says that it failed of; null where it says nothing. */
  readonly fault: string | null
  readonly artifacts: readonly StoredArtifact[]
  /** True where it is verified on all files of the agent's box. */
  readonly shared: boolean
  /** Whether the model answered the agent (in its last step, of several). Where not, nothing of the policy can be scored. */
  readonly answered: boolean
  /** Known when the agent was done, and not told by its artifacts. Earlier versions left it out. */
  readonly known?: {
    /** False: no verifier has anything to look at, such as after a harness without a box. */
    readonly unverified: boolean
    /** Drafts on the steps of a task that were verified while the agent was at work. */
    readonly drafts: readonly VerdictDraft[]
  }
  readonly calls: number
  readonly sampledTokens: number
  /** The agent's own clock. */
  readonly agentMs: number
}

/** A rollout with what was appended to it since. */
export interface RolloutView extends RolloutRecord {
  readonly taskDigest: Digest
  /** Null until the agent is done. With work and without an end the rollout is unverified. */
  readonly work: RolloutWork | null
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly end: RolloutEnd | null
  readonly endDetail: string
  /** Causes of taint; an RL export leaves a tainted rollout out. */
  readonly taints: readonly string[]
  /** All verdicts in order of appending; the last that none supersedes is in force. */
  readonly verdicts: readonly Verdict[]
  readonly labels: Readonly<Record<string, string>>
}

/** What became of work that was done elsewhere and brought to be verified. */
export interface VerificationRecord {
  /** The key of whoever asked. */
  readonly id: string
  /** Digest of all that was asked under the key. */
  readonly asked: Digest
  readonly taskDigest: Digest
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Name of the token under which it was asked. */
  readonly token: string
  readonly verdict: VerdictDraft
}

export interface CatalogueReader {
  run(id: Id): Promise<RunRecord>
  runs(limit?: number): Promise<readonly RunRecord[]>
  /**
   * Where the segments of a run are, for people to read, when they are in another data directory on the same catalogue; null: here.
   * What is of a run elsewhere can be read, and nothing is begun in it (`RECORDED_ELSEWHERE`).
   */
  elsewhere(runId: Id): Promise<string | null>
  /** Of this data directory: runs of trainers that are not closed, and runs with a round that goes on; newest first. */
  unfinishedRuns(of: 'all' | 'evals'): Promise<readonly RunRecord[]>
  task(digest: Digest): Promise<Task>
  tasks(): Promise<readonly Task[]>
  group(id: Id): Promise<GroupRecord>
  groups(runId: Id): Promise<readonly GroupRecord[]>
  /** Throws `NOT_FOUND`. */
  rollout(id: Id): Promise<RolloutView>
  rollouts(filter: RolloutFilter): Promise<readonly RolloutView[]>
  /** How many there are, of a run, of a task or of all. */
  countRollouts(o: { runId: Id | null } | { taskDigest: Digest }): Promise<number>
  /** How far taints, labels and verdicts go: what can come to a rollout after its end. For {@link touchedSince}. */
  mark(): Promise<string>
  /** Rollouts, of a run or of all, that got a taint, a label or a verdict since a mark. Costs what came since. */
  touchedSince(mark: string, o: { runId: Id | null }): Promise<readonly Id[]>
  /** Rounds of a group, oldest first. */
  rounds(groupId: Id): Promise<readonly RoundView[]>
  /** Rounds of a run that settled behind `after`, in the order in which they did. */
  settledRounds(
    runId: Id,
    o: { after: number; limit: number },
  ): Promise<readonly { readonly seq: number; readonly settled: SettledRound }[]>
  /** What is known of tasks, a page at a time. Throws `BODY_INVALID_SHAPE` for a cursor of another query. */
  memory(query: MemoryQuery): Promise<MemoryPage>
  /** Events of a run after `after`, oldest first. */
  runEvents(runId: Id, o: { after: number; limit: number }): Promise<readonly RunEvent[]>
  /** `seq` of the last event of a run; 0 before the first. */
  lastRunEvent(runId: Id): Promise<number>
  fingerprint(digest: Digest): Promise<EngineFingerprint>
  /** The verification of a key; null: none has come to a verdict. */
  verification(key: string): Promise<VerificationRecord | null>
  /** Texts of token ids for one tokenizer, as far as known. Bytes, because a token may hold a part of a character. */
  tokenTexts(tokenizer: string, ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>>
  /** Where the records of sessions are, of a rollout or of one, as far as they are archived; by session. */
  archived(of: { rolloutId: Id } | { sessionId: Id }): Promise<readonly ArchivedRecord[]>
  /** Which of these objects of a folder are the archive of some session. */
  namedObjects(folder: string, objects: readonly Digest[]): Promise<readonly Digest[]>
  /** Ids that start with `prefix`, over rollouts, sessions, runs, groups: for the CLI's short ids. */
  resolve(prefix: string): Promise<readonly { readonly kind: 'run' | 'group' | 'rollout'; readonly id: Id }[]>
  close(): Promise<void>
}

export interface Catalogue extends CatalogueReader {
  putTask(task: Task): Promise<void>
  putRun(run: RunRecord): Promise<void>
  putGroup(group: GroupRecord): Promise<void>
  putRollout(rollout: RolloutRecord): Promise<void>
  startRollout(id: Id, at: number): Promise<void>
  /** Once, before the end. Throws `STORE_CONFLICT` for other work than what is there. */
  putWork(id: Id, work: RolloutWork): Promise<void>
  /** Only the first end counts; a second one throws `NOT_FOUND`-free and is ignored when equal, refused otherwise. */
  endRollout(id: Id, at: number, end: RolloutEnd, detail: string): Promise<void>
  taint(rolloutId: Id, cause: string): Promise<void>
  label(rolloutId: Id, name: string, value: string): Promise<void>
  /** Of a rollout in a settled round it changes nothing there: it is told as `verdict_late`. */
  appendVerdict(verdict: Verdict): Promise<void>
  /** Opens a round. Idempotent; throws `ROUND_OPEN` where the round before has not settled. */
  openRound(round: RoundRecord): Promise<void>
  /**
   * Opens slots in the round that goes on, numbered through all rounds of the group. With a key there is one slot for it,
   * however often it is asked for. Throws `ROUND_SETTLED` where no round goes on.
   */
  openSlots(
    groupId: Id,
    slots: readonly { readonly jobId: Id; readonly key: string | null }[],
  ): Promise<readonly SlotRecord[]>
  /** Settles a round and tells it. The first settlement stands: it is what every later call resolves with. */
  settleRound(settled: SettledRound): Promise<SettledRound>
  /** Returns the digest under which it is stored. */
  putFingerprint(fingerprint: EngineFingerprint): Promise<Digest>
  /** The first of a key stands: it is what every later call resolves with. */
  putVerification(verification: VerificationRecord): Promise<VerificationRecord>
  /** Names objects, which are safe by now. Idempotent. */
  putArchived(records: readonly ArchivedRecord[]): Promise<void>
  putTokenTexts(tokenizer: string, texts: ReadonlyMap<number, Uint8Array>): Promise<void>
}
