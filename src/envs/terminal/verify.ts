import { posix } from 'node:path'
import { isPaddockError, PaddockError, sha256 } from '../../core/index.ts'
import {
  type CheckOutcome,
  type DraftFacts,
  hacked,
  isStarved,
  runCheck,
  scored,
  unscored,
  type VerdictDraft,
} from '../../reward/index.ts'
import type { Box, BoxLayer, Snapshot } from '../../sandbox/index.ts'
import { packArtifact, restoreArtifact } from '../artifacts.ts'
import type { ArtifactItem, BoxNeeds, TaskProof, VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { filesystemAmong } from '../filesystem.ts'
import { signsAmong, type TamperSign } from '../tamper.ts'
import type { TerminalData } from './data.ts'
import { testsOf } from './folders.ts'
import { readProof } from './proof-file.ts'
import { type RunnerReport, runnerReport, withRunnerProof } from './runner-proof.ts'
import { scriptCommand } from './shebang.ts'
import { type Brought, gitGuards, workLimits, workOnly, workPlaces } from './work-only.ts'

/** Changes when the way of verifying does; the tests of a task have their own digest. */
export const terminalVerifierVersion = '6'

type Context = Omit<VerifyContext, 'task'> & { readonly task: TaskOf<TerminalData> }

/**
 * Runs `/tests/test.sh` by its own first line in a fresh box and reads `/logs/verifier`. The box is of the verifier's image and gets the agent's
 * work alone (`work-only.ts`). The tests are readable by root alone, so that code of the agent which they run as another user sees neither them nor
 * the place of the reward.
 *
 * A task that is verified on the agent's own files (`shared`) is verified in such a box too, if its own solution was seen to pass there: 1 counts.
 * Anything less is verified on a copy of the agent's files as well, in which nothing of the agent runs; if that gives more, there is no number. A
 * task whose solution does not pass there, or that was never validated, has only the copy.
 *
 * An agent that was seen to tamper is `hacked`, with 0, whatever the tests say. A verifier that gives no reward, or a box
 * that fails, is tried without what the agent left: if there is a reward then, and again none with it, it is the agent's
 * doing that there is none, and that is 0 too; else nobody knows, and there is no number.
 */
export async function verifyArtifacts(context: Context, needs: BoxNeeds): Promise<VerdictDraft> {
  const { task, artifacts } = context
  const { signs, caches, outside, cut, rest: items } = signsAmong(artifacts)
  const { layer, unfit, rest } = filesystemAmong(items)
  const packed = await Promise.all(artifacts.items.filter((item) => item.content.found).map(packArtifact))
  const shared = task.data.verifier.shared === true
  const proof = context.proof === undefined ? await readProof(task) : context.proof
  const seen: Seen = {
    signs,
    proof,
    items: rest,
    facts: {
      verifier: { id: `terminal/${task.name}`, version: terminalVerifierVersion, sha256: await testsDigest(task) },
      trust: 'separate',
      artifacts: packed.map(({ path, sha256, sizeBytes }) => ({ path, sha256, sizeBytes })),
    },
  }
  const untouched: Ground = { ...nothingLeft, needs, isControl: true }
  const onWork = (): Promise<Checked> => settled(context, { ...nothingLeft, items: rest, needs }, untouched)
  if (!shared) {
    const outcome = await onWork()
    tellProof(context, outcome, true)
    return draftOf(outcome, seen, 'separate')
  }
  if (unfit !== null) {
    const told = { ...seen.facts, components: { files_unfit: 1 }, evidence: evidenceOf(unfit, seen) }
    return signs.some(isSure) ? hacked(0, told) : scored(0, told)
  }
  const copy = copyOf(needs, artifacts.filesystem ?? null, layer, caches)
  const onCopy = async (): Promise<Checked> => (copy === null ? gone : settled(context, copy, untouched))
  if (context.onProof !== undefined) return verifiedBothWays(context, { onWork, onCopy, cut }, { ...seen, outside })
  if (proof?.transplant !== true) return draftOf(await onCopy(), seen, proof === null ? 'unvalidated' : 'shared')
  if (cut) return unscored('unscorable', 'The work is larger than a verifier takes.', seen.facts)
  return transplanted({ onWork, onCopy }, { ...seen, outside })
}

/** The places in which a task can be verified: a box that gets the work alone, and a copy of all files. */
interface Ways {
  readonly onWork: () => Promise<Checked>
  readonly onCopy: () => Promise<Checked>
}

/** The task's own solution, whose work is verified in both places. */
async function verifiedBothWays(
  context: Context,
  { onWork, onCopy, cut }: Ways & { readonly cut: boolean },
  seen: Seen,
): Promise<VerdictDraft> {
  const [moved, left] = [await onWork(), await onCopy()]
  const passes = !cut && rewardOf(moved, null) >= 1
  tellProof(context, passes ? moved : left, passes)
  return passes ? draftOf(moved, { ...seen, outside: [] }, 'separate') : draftOf(left, seen, 'shared')
}

/** Work that is verified alone. What the copy gives beyond that has no number. */
async function transplanted({ onWork, onCopy }: Ways, seen: Seen): Promise<VerdictDraft> {
  const { proof } = seen
  const moved = await onWork()
  const draft = draftOf(moved, { ...seen, outside: [] }, 'separate')
  if (moved.kind !== 'measured' || draft.status === 'hacked' || rewardOf(moved, proof) >= 1) return draft
  const left = await onCopy()
  if (left.kind === 'measured' && rewardOf(left, proof) <= rewardOf(moved, proof)) return draft
  const onAll = draftOf(left, seen, 'shared')
  if (onAll.status === 'hacked' || left.kind !== 'measured') return onAll
  const reason =
    "The tests pass on the files of the agent's box and not on its work alone. The evidence names files elsewhere that it changed."
  return unscored('unscorable', reason, { ...seen.facts, trust: 'shared', evidence: onAll.evidence })
}

/** All that a verdict is made of but the outcome of the tests. */
interface Seen {
  readonly signs: readonly TamperSign[]
  readonly proof: TaskProof | null
  readonly items: readonly ArtifactItem[]
  readonly facts: DraftFacts
  /** Files that the agent changed in other places than those of its work. */
  readonly outside?: readonly string[]
}

/** The outcome of a check, the report of its test runner, and whether the machine was too busy for it. */
type Checked = CheckOutcome & { readonly runner?: RunnerReport | null; readonly starved?: boolean }

const gone: Checked = { kind: 'broken', reason: "The files of the agent's box are gone.", output: '' }

/** What a check is run on. */
interface Ground {
  readonly items: readonly ArtifactItem[]
  readonly needs: BoxNeeds
  /** The agent's files, where no snapshot of them is left. */
  readonly layer: BoxLayer | null
  /** Directories to be removed before the tests. */
  readonly caches: readonly string[]
  readonly isControl: boolean
  /** It holds all of the agent's files, settings of tools among them. */
  readonly isCopy: boolean
}

const nothingLeft = { items: [], layer: null, caches: [], isControl: false, isCopy: false }

/** Tests that have to pass for a full reward, and did not. */
function missingOf({ runner }: Checked, proof: TaskProof | null): readonly string[] {
  return (proof?.tests ?? []).filter((id) => runner?.passed.has(id) !== true)
}

/** The reward of a check: 0 if its runner contradicts a full reward. */
function rewardOf(outcome: Checked, proof: TaskProof | null): number {
  if (outcome.kind !== 'measured') return 0
  if (outcome.reward < 1) return outcome.reward
  const isDenied = (outcome.runner?.against ?? null) !== null || missingOf(outcome, proof).length > 0
  return isDenied ? 0 : outcome.reward
}

function tellProof({ task, onProof }: Context, outcome: Checked, transplant: boolean): void {
  onProof?.(task.digest, { transplant, tests: [...(outcome.runner?.passed ?? [])] })
}

/** The agent's own files: the snapshot, or what was kept of them. */
function copyOf(
  needs: BoxNeeds,
  filesystem: Snapshot | null,
  layer: BoxLayer | null,
  caches: readonly string[],
): Ground | null {
  const ground = { ...nothingLeft, needs, layer, caches, isCopy: true }
  if (filesystem === null) return layer === null ? null : ground
  const image = { kind: 'reference' as const, reference: filesystem.image.tag }
  return { ...ground, needs: { ...needs, image }, layer: null }
}

/**
 * A check that gives no reward is repeated without what the agent left, and then with it. A fault of ours may come and
 * go, so that after one the same is done once more. So may a load of the machine, which alone makes tests late: before
 * lateness is the agent's doing, both controls must have ended in time and found the processor free.
 */
async function settled(context: Context, left: Ground, untouched: Ground): Promise<Checked> {
  const first = await check(context, left)
  if (first.kind === 'measured') return first
  const control = await check(context, untouched)
  if (control.kind !== 'measured') return control.kind === 'fault' ? control : first
  const second = await check(context, left)
  if (second.kind === 'measured') return second
  const late = [first, second].some((one) => one.kind === 'broken' && one.late === true)
  if (second.kind === 'fault' || late) {
    const again = await check(context, untouched)
    if (second.kind === 'fault' && again.kind !== 'measured') return second
    if (late && (again.kind !== 'measured' || control.starved === true || again.starved === true))
      return tooBusy(second)
  }
  const output = `${second.output}\nThe verifier gives no reward on what the agent left (${second.reason}), twice, and one without it.`
  return { kind: 'measured', reward: 0, components: { verifier_broken: 1 }, output }
}

function tooBusy({ output }: Checked): Checked {
  const reason =
    'The tests ran out of time, and the machine gave their box too little of a processor: nobody knows why.'
  return { kind: 'fault', reason, output }
}

async function check(context: Context, ground: Ground): Promise<Checked> {
  try {
    return await checkOn(context, ground)
  } catch (error) {
    context.signal.throwIfAborted()
    if (!isPaddockError(error) || (error.family !== 'infra' && error.family !== 'agent')) throw error
    return { kind: 'fault', reason: error.line(), output: '' }
  }
}

async function checkOn(context: Context, { items, needs, layer, caches, isControl, isCopy }: Ground): Promise<Checked> {
  const { task, signal } = context
  await using box = await context.openBox(needs)
  if (layer !== null) await box.applyLayer(layer)
  await removeAll(box, caches, signal)
  const refused = await prepare(box, context, items)
  if (refused !== null) return { kind: 'broken', reason: refused, output: '' }
  const { verifier } = task.data
  const outcome = await runCheck(box, {
    command: await withRunnerProof(box, scriptCommand('/tests/test.sh'), workPlaces(task, box)),
    rewardDirectory: '/logs/verifier',
    timeoutMs: verifier.timeoutMs,
    env: isCopy ? verifier.env : { ...gitGuards, ...verifier.env },
    user: verifier.user,
    signal,
  })
  if (outcome.kind !== 'measured') return outcome
  // Nothing of the agent is here that could slow the shell down.
  if (isControl) return { ...outcome, starved: await isStarved(box, { cpus: needs.cpus ?? 1, signal }) }
  return { ...outcome, runner: await runnerReport(box) }
}

/** Null, or why what the agent left cannot be put where the tests look for it. */
async function prepare(box: Box, { task, signal }: Context, items: readonly ArtifactItem[]): Promise<string | null> {
  const owner = task.data.agent.profile === 'user' ? 1000 : 0
  const declared = new Set(task.data.artifacts.map(({ source }) => posix.resolve(box.workdir, source)))
  for (const item of items) {
    try {
      await restoreArtifact(box, workOnly(item, await broughtAt(box, item), declared), { owner, signal })
    } catch (error) {
      if (error instanceof PaddockError && error.code === 'VERIFIER_FAILED') return error.message
      throw error
    }
  }
  if (!task.data.verifier.uploadTests) return null
  // Emptied, because on shared ground the agent may have left something there.
  await closeTests(box, task, 'rm -rf /tests && mkdir -m 700 /tests', signal)
  for (const { files } of await testsOf(task)) {
    if (files === null) continue
    await box.putFiles('/tests', 'fromDirectory' in files ? { ...files, uid: 0, gid: 0 } : files)
  }
  await closeTests(box, task, 'chown -R -- "$1" /tests && chmod 700 /tests', signal)
  return null
}

/** The task's own files at the place of an item; null for an item that is one file. */
async function broughtAt(box: Box, { path, content }: ArtifactItem): Promise<Brought> {
  if (!content.entries.some((entry) => entry.path === '.')) return null
  const { entries } = await box.getFiles(path, workLimits)
  return new Map(entries.map((entry) => [entry.path, entry]))
}

/** What compiled Python leaves is made again of its source, and only its source was looked at. */
async function removeAll(box: Box, paths: readonly string[], signal: AbortSignal): Promise<void> {
  for (let at = 0; at < paths.length; at += 500) {
    const command = ['/bin/rm', '-rf', '--', ...paths.slice(at, at + 500)]
    const result = await box.exec({ command, cwd: '/' }, { signal })
    if (result.kind === 'exited' && result.code === 0) continue
    throw new PaddockError('VERIFIER_FAILED', 'Compiled Python that an agent left could not be removed', {
      fix: 'The image needs rm.',
    })
  }
}

async function closeTests(box: Box, task: TaskOf<TerminalData>, script: string, signal: AbortSignal): Promise<void> {
  const user = task.data.verifier.user ?? 'root'
  const closed = await box.exec({ command: ['/bin/sh', '-c', script, 'sh', user], cwd: '/' }, { signal })
  if (closed.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${closed.why.detail}`)
  if (closed.kind !== 'exited' || closed.code !== 0) {
    throw new PaddockError('VERIFIER_FAILED', `The tests of ${task.name} could not be put into the verifier's box`)
  }
}

async function testsDigest(task: TaskOf<TerminalData>): Promise<string> {
  const digests = await Promise.all((await testsOf(task)).map((directory) => directory.digest()))
  return digests.length === 1 ? (digests[0] ?? '') : sha256(digests.join('\n'))
}

function draftOf(outcome: Checked, seen: Seen, trust: DraftFacts['trust']): VerdictDraft {
  const { signs, proof } = seen
  const inside = outcome.runner?.inside ?? []
  const facts: DraftFacts = {
    ...seen.facts,
    trust: trust === 'separate' && inside.length > 0 ? 'in_process' : trust,
    evidence: evidenceOf(outputOf(outcome, proof), seen),
  }
  if (outcome.kind === 'fault') return unscored('infra_error', outcome.reason, facts)
  const maybe = signs.filter((sign) => !isSure(sign)).length
  const changed: Record<string, number> = maybe === 0 ? {} : { environment_changed: maybe }
  const isForged = outcome.runner?.isForged === true
  if (signs.some(isSure) || isForged) {
    const measured = outcome.kind === 'measured' ? { ...outcome.components, measured: outcome.reward } : {}
    return hacked(0, { ...facts, components: { ...measured, ...changed } })
  }
  if (outcome.kind === 'broken') return unscored('unscorable', outcome.reason, facts)
  const reward = rewardOf(outcome, proof)
  const denied: Record<string, number> = reward === outcome.reward ? {} : { measured: outcome.reward }
  return scored(reward, { ...facts, components: { ...outcome.components, ...denied, ...changed } })
}

function isSure({ maybe }: TamperSign): boolean {
  return maybe !== true
}

/** Names in the evidence. */
const mostNames = 50

function outputOf(outcome: Checked, proof: TaskProof | null): string {
  const against = outcome.runner?.against ?? null
  const missing =
    outcome.kind === 'measured' && outcome.reward >= 1 ? missingOf(outcome, proof).slice(0, mostNames) : []
  return [
    outcome.output,
    ...(against === null ? [] : [`test_runner: ${against}`]),
    ...missing.map((id) => `not passed: ${id}`),
  ].join('\n')
}

function evidenceOf(output: string, { items, signs, outside = [] }: Seen): string {
  const refused = items.flatMap((item) =>
    item.content.refused.slice(0, 20).map((entry) => `left out: ${item.path}/${entry.path} (${entry.reason})`),
  )
  return [
    ...refused,
    output,
    ...signs.map((sign) => `${isSure(sign) ? 'tampered' : 'changed'}: ${sign.kind} ${sign.path}`),
    ...outside.slice(0, mostNames).map((path) => `changed outside the work: ${path}`),
  ].join('\n')
}
