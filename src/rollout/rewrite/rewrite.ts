import {
  type Clock,
  type Id,
  PaddockError,
  sha256,
  systemClock,
  type Task,
  type VerdictDraft,
} from '../../core/index.ts'
import type { Environment } from '../../envs/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import {
  type ExportRollout,
  preferenceLine,
  type RequestReader,
  rewrittenHarness,
  type RolloutView,
  selectForExport,
  type Store,
  takeIn,
  type TakenIn,
  type TakeInReport,
  verdictInForce,
} from '../../trajectory/index.ts'
import { Gate } from '../gate.ts'
import type { FindRoleEngine } from '../role-engine.ts'
import { verifyItem } from '../verification/item.ts'
import { keepArtifacts } from '../work.ts'
import { refused, type Rewrite, rewritten } from './edits.ts'

/** A rewrite of a rollout that was found. */
export interface AskedRewrite {
  readonly rolloutId: Id
  readonly rewrite: Rewrite
  /** `<file>#<line>`. */
  readonly place: string
}

export interface RewriteOptions {
  readonly store: Store
  readonly rewrites: readonly AskedRewrite[]
  /** Name of the run. */
  readonly name: string
  readonly readRequest: RequestReader
  /** Asked for where an answer is verified. Throws for a name that it does not know. */
  environment(name: string): Promise<Environment>
  /** Likewise. Closed by whoever gives it. */
  sandbox(): Promise<SandboxProvider>
  /** The engine that judges are asked at, on the record. Default: none. */
  readonly judge?: FindRoleEngine | null
  /** Verifications at once. Default 2. */
  readonly parallel?: number
  readonly signal: AbortSignal
  readonly clock?: Clock
}

export interface RewriteReport extends TakeInReport {
  readonly rewrites: number
  /** The rewritten conversation and the recorded one, as a line of preference each, where the first thing that differs is an answer. */
  readonly pairs: readonly string[]
  readonly withVerdict: number
}

/**
 * Makes new rollouts of recorded ones by putting other messages in the place of some: a run of their own, of the harness `rewritten`, under
 * the tasks of the originals, which stay as they are. All are read, checked and verified before the first is written. The same rewrites a second time change
 * nothing. Throws `REWRITE_REFUSED`, `NOT_FOUND`, `WORK_REFUSED`, `VERIFY_FAILED`, `STORE_*`.
 */
export async function rewriteRollouts(o: RewriteOptions): Promise<RewriteReport> {
  const drafts: Drafted[] = []
  for (const asked of o.rewrites) drafts.push(await draftOf(o, asked))
  const gate = new Gate(o.parallel ?? 2)
  const rollouts = await Promise.all(
    drafts.map(async ({ task, answer, ...rest }): Promise<TakenIn & Pick<Drafted, 'pair'>> => {
      if (answer === undefined) return { ...rest, task, verdict: null }
      using _place = await gate.enter(o.signal)
      return { ...rest, task, verdict: await verdictOf(o, { task, answer }) }
    }),
  )
  const digest = sha256(JSON.stringify([o.name, o.rewrites.map(({ rolloutId, rewrite }) => [rolloutId, rewrite])]))
  const report = await takeIn(o.store, {
    kind: 'rewrite',
    digest,
    about: { rewrites: rollouts.length },
    name: o.name,
    harness: rewrittenHarness,
    promptVariant: 'rewritten',
    rollouts,
    clock: o.clock ?? systemClock,
    signal: o.signal,
  })
  return {
    ...report,
    rewrites: rollouts.length,
    pairs: rollouts.flatMap(({ pair, verdict }) => pair(verdict?.status === 'scored' ? verdict.reward : null)),
    withVerdict: rollouts.filter(({ verdict }) => verdict !== null).length,
  }
}

interface Drafted extends Omit<TakenIn, 'verdict'> {
  readonly answer: string | undefined
  /** By the reward of the rewritten one. */
  readonly pair: (reward: number | null) => readonly string[]
}

async function draftOf(o: RewriteOptions, { rolloutId, rewrite, place }: AskedRewrite): Promise<Drafted> {
  const { catalogue } = o.store
  const rollout = await catalogue.rollout(rolloutId)
  const task = await catalogue.task(rollout.taskDigest)
  const { messages, tools, answers } = await conversationOf(o, rollout, place)
  const made = rewritten(messages, rewrite, place)
  const { by, reason, labels, answer } = rewrite
  const given = { 'rewritten.from': rolloutId, 'rewritten.by': by, 'rewritten.message': String(made.first) }
  const call = answers[made.first] ?? answers.slice(made.first).find((one) => one !== null) ?? null
  return {
    place,
    model: null,
    task,
    labels: {
      ...labels,
      ...given,
      ...(call === null ? {} : { 'rewritten.call': call }),
      ...(reason === undefined ? {} : { 'rewritten.reason': reason }),
      place,
    },
    threads: [{ messages: made.messages, tools, of: 'main' }],
    answer,
    pair: (reward) => {
      // As they stand, whatever is kept out of fine-tuning.
      const chosen = rewritten(messages, { ...rewrite, trains: 'all' }, place)
      const made = preferenceLine(
        { messages: chosen.messages, tools },
        { messages, tools },
        {
          task: task.name,
          reward_chosen: reward,
          reward_rejected: verdictInForce(rollout.verdicts)?.reward ?? null,
          rollout_rejected: rolloutId,
          by,
          reason,
        },
      )
      return typeof made === 'string' ? [] : [made.line]
    },
  }
}

/** The main conversation as it ended, and beside each message the call whose answer it is. */
async function conversationOf(
  { store, readRequest }: RewriteOptions,
  rollout: RolloutView,
  place: string,
): Promise<{
  readonly messages: readonly string[]
  readonly tools: string | null
  readonly answers: readonly (Id | null)[]
}> {
  const everything = { includeNullVerdicts: true, includeTainted: true, includeUnfinished: true, includeImported: true }
  const { recorder, catalogue } = store
  const query = { rolloutIds: [rollout.id], ...everything }
  for await (const exported of selectForExport({ recorder, catalogue, readRequest }, query)) {
    const at = exported.rows.findLastIndex((row) => row.segments.findLast(isAnswer)?.callClass === 'main')
    const conversation = exported.conversations[at]
    if (conversation === undefined) break
    const { messages, tools } = conversation
    return { messages, tools, answers: answersOf(messages, exported.rows[at]?.segments ?? []) }
  }
  throw refused(`${place}: rollout ${rollout.id} has no conversation of its own that ends with an answer`)
}

type Segments = ExportRollout['rows'][number]['segments']

function isAnswer({ choice, origin }: Segments[number]): boolean {
  return choice !== null && origin !== 'prompt'
}

/** From the end: what an earlier call answered may stand in the prompt no more. */
function answersOf(messages: readonly string[], segments: Segments): readonly (Id | null)[] {
  const calls = segments.filter(isAnswer).map(({ callId }) => callId)
  return messages
    .toReversed()
    .map((text) => {
      const { role } = JSON.parse(text) as { readonly role?: unknown }
      return role === 'assistant' ? (calls.pop() ?? null) : null
    })
    .toReversed()
}

async function verdictOf(
  o: RewriteOptions,
  { task, answer }: { readonly task: Task; readonly answer: string },
): Promise<VerdictDraft> {
  const environment = task.environment === 'none' ? null : await o.environment(task.environment)
  const outside = environment?.outside(task) ?? null
  if (environment === null || outside === null) {
    throw new PaddockError(
      'TASK_UNSUPPORTED',
      `Task ${task.name}: nothing verifies an answer that was not given in a box of Paddock`,
      {
        fix: 'Leave `answer` out; a late verdict may say what the rewrite is worth.',
      },
    )
  }
  const artifacts = outside.artifacts({ items: [], answer })
  const { signal, judge = null } = o
  const judged = { rolloutId: null, purpose: 'rewrite' }
  const sandbox = await o.sandbox()
  const verifier = { environment, sandbox, labels: {}, judge, judged, signal, emit: () => undefined }
  const draft = await verifyItem(verifier, { task, artifacts })
  if (draft.status === 'infra_error' || draft.status === 'judge_failed') {
    throw new PaddockError('VERIFY_FAILED', `Task ${task.name} could not be verified: ${draft.reason}`)
  }
  const kept = await keepArtifacts(o.store.blobs, artifacts)
  const evidence = `${draft.evidence}\nThe answer was rewritten: nothing of how it was come to was looked at.`
  return { ...draft, evidence, artifacts: draft.artifacts.length > 0 ? draft.artifacts : kept }
}
