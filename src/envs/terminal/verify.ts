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
import type { ArtifactItem, BoxNeeds, VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { filesystemAmong } from '../filesystem.ts'
import { signsAmong, type TamperSign } from '../tamper.ts'
import type { TerminalData } from './data.ts'
import { testsOf } from './folders.ts'
import { againstReward, withRunnerProof } from './runner-proof.ts'
import { scriptCommand } from './shebang.ts'

/** Changes when the way of verifying does; the tests of a task have their own digest. */
export const terminalVerifierVersion = '5'

type Context = Omit<VerifyContext, 'task'> & { readonly task: TaskOf<TerminalData> }

/**
 * Runs `/tests/test.sh` by its own first line in a fresh box and reads `/logs/verifier`: on the verifier's image with the artifacts, or, where
 * the task is verified on the agent's own files (`shared`), on a copy of those, in which nothing of the agent runs. The
 * tests are readable by root alone, so that code of the agent which they run as another user sees neither them nor the
 * place of the reward.
 *
 * An agent that was seen to tamper is `hacked`, with 0, whatever the tests say. A verifier that gives no reward, or a box
 * that fails, is tried without what the agent left: if there is a reward then, and again none with it, it is the agent's
 * doing that there is none, and that is 0 too; else nobody knows, and there is no number.
 */
export async function verifyArtifacts(context: Context, needs: BoxNeeds): Promise<VerdictDraft> {
  const { task, artifacts } = context
  const { signs, caches, rest: items } = signsAmong(artifacts)
  const { layer, unfit, rest } = filesystemAmong(items)
  const { filesystem = null } = artifacts
  const packed = await Promise.all(artifacts.items.filter((item) => item.content.found).map(packArtifact))
  const shared = task.data.verifier.shared === true
  const facts: DraftFacts = {
    verifier: { id: `terminal/${task.name}`, version: terminalVerifierVersion, sha256: await testsDigest(task) },
    trust: shared ? 'shared' : 'separate',
    artifacts: packed.map(({ path, sha256, sizeBytes }) => ({ path, sha256, sizeBytes })),
  }
  if (shared && unfit !== null) {
    const told = { ...facts, components: { files_unfit: 1 }, evidence: evidenceOf(unfit, rest, signs) }
    return signs.some(isSure) ? hacked(0, told) : scored(0, told)
  }
  const left = shared
    ? groundOfAgent(needs, filesystem, layer, caches)
    : { items: rest, needs, layer: null, caches: [], isControl: false }
  if (left === null) return unscored('unscorable', "The files of the agent's box are gone.", facts)
  const outcome = await settled(context, left, { items: [], needs, layer: null, caches: [], isControl: true })
  return draftOf(outcome, signs, { ...facts, evidence: evidenceOf(outputOf(outcome), rest, signs) })
}

/** What came of a check, what the runner of its tests says against the reward, and whether the machine was too busy for it. */
type Checked = CheckOutcome & { readonly against?: string; readonly starved?: boolean }

/** What a check is run on. */
interface Ground {
  readonly items: readonly ArtifactItem[]
  readonly needs: BoxNeeds
  /** The agent's files, where no snapshot of them is left. */
  readonly layer: BoxLayer | null
  /** Directories to be removed before the tests. */
  readonly caches: readonly string[]
  readonly isControl: boolean
}

/** The agent's own files: the snapshot, or what was kept of them. */
function groundOfAgent(
  needs: BoxNeeds,
  filesystem: Snapshot | null,
  layer: BoxLayer | null,
  caches: readonly string[],
): Ground | null {
  if (filesystem === null) return layer === null ? null : { items: [], needs, layer, caches, isControl: false }
  const image = { kind: 'reference' as const, reference: filesystem.image.tag }
  return { items: [], needs: { ...needs, image }, layer: null, caches, isControl: false }
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

async function checkOn(context: Context, { items, needs, layer, caches, isControl }: Ground): Promise<Checked> {
  const { task, signal } = context
  await using box = await context.openBox(needs)
  if (layer !== null) await box.applyLayer(layer)
  await removeAll(box, caches, signal)
  const refused = await prepare(box, context, items)
  if (refused !== null) return { kind: 'broken', reason: refused, output: '' }
  const { verifier } = task.data
  const outcome = await runCheck(box, {
    command: await withRunnerProof(box, scriptCommand('/tests/test.sh')),
    rewardDirectory: '/logs/verifier',
    timeoutMs: verifier.timeoutMs,
    env: verifier.env,
    user: verifier.user,
    signal,
  })
  if (outcome.kind !== 'measured') return outcome
  // Nothing of the agent is here that could slow the shell down.
  if (isControl) return { ...outcome, starved: await isStarved(box, { cpus: needs.cpus ?? 1, signal }) }
  const against = await againstReward(box, outcome.reward)
  return against === null ? outcome : { ...outcome, against }
}

/** Null, or why what the agent left cannot be put where the tests look for it. */
async function prepare(box: Box, { task, signal }: Context, items: readonly ArtifactItem[]): Promise<string | null> {
  const owner = task.data.agent.profile === 'user' ? 1000 : 0
  for (const item of items) {
    try {
      await restoreArtifact(box, item, { owner, signal })
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

function draftOf(outcome: Checked, signs: readonly TamperSign[], facts: DraftFacts): VerdictDraft {
  if (outcome.kind === 'fault') return unscored('infra_error', outcome.reason, facts)
  const maybe = signs.filter((sign) => !isSure(sign)).length
  const changed: Record<string, number> = maybe === 0 ? {} : { environment_changed: maybe }
  if (signs.some(isSure) || outcome.against !== undefined) {
    const measured = outcome.kind === 'measured' ? { ...outcome.components, measured: outcome.reward } : {}
    return hacked(0, { ...facts, components: { ...measured, ...changed } })
  }
  if (outcome.kind === 'broken') return unscored('unscorable', outcome.reason, facts)
  return scored(outcome.reward, { ...facts, components: { ...outcome.components, ...changed } })
}

function isSure({ maybe }: TamperSign): boolean {
  return maybe !== true
}

function outputOf({ output, against }: Checked): string {
  return against === undefined ? output : `${output}\ntampered: test_runner ${against}`
}

function evidenceOf(output: string, items: readonly ArtifactItem[], signs: readonly TamperSign[]): string {
  const refused = items.flatMap((item) =>
    item.content.refused.slice(0, 20).map((entry) => `left out: ${item.path}/${entry.path} (${entry.reason})`),
  )
  return [
    ...refused,
    output,
    ...signs.map((sign) => `${isSure(sign) ? 'tampered' : 'changed'}: ${sign.kind} ${sign.path}`),
  ].join('\n')
}
