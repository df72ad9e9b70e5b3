import { join } from 'node:path'
import { PaddockError } from '../../core/index.ts'
import {
  type CheckOutcome,
  directoryDigest,
  type DraftFacts,
  runCheck,
  scored,
  unscored,
  type VerdictDraft,
} from '../../reward/index.ts'
import type { Box } from '../../sandbox/index.ts'
import { packArtifact, restoreArtifact } from '../artifacts.ts'
import type { Artifacts, BoxNeeds, VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** Changes when the way of verifying does; the tests of a task have their own digest. */
export const terminalVerifierVersion = '1'

/**
 * Restores the artifacts in a fresh box of the verifier's image, puts the tests there, runs `/tests/test.sh` and reads
 * `/logs/verifier`. The tests are readable by root alone, so that code of the agent which they run as another user
 * sees neither them nor the place of the reward.
 */
export async function verifyArtifacts(
  context: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<TerminalData> },
  needs: BoxNeeds,
): Promise<VerdictDraft> {
  const { task, artifacts, signal } = context
  const packed = await Promise.all(artifacts.items.filter((item) => item.content.found).map(packArtifact))
  const facts: DraftFacts = {
    verifier: {
      id: `terminal/${task.name}`,
      version: terminalVerifierVersion,
      sha256: await directoryDigest(join(task.source, 'tests')),
    },
    trust: 'separate',
    artifacts: packed.map(({ path, sha256, sizeBytes }) => ({ path, sha256, sizeBytes })),
  }
  await using box = await context.openBox(needs)
  await prepare(box, context)
  const { verifier } = task.data
  const outcome = await runCheck(box, {
    command: ['/bin/bash', '/tests/test.sh'],
    rewardDirectory: '/logs/verifier',
    timeoutMs: verifier.timeoutMs,
    env: verifier.env,
    user: verifier.user,
    signal,
  })
  return draftOf(outcome, { ...facts, evidence: evidenceOf(outcome.output, artifacts) })
}

async function prepare(
  box: Box,
  { task, artifacts, signal }: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<TerminalData> },
): Promise<void> {
  const owner = task.data.agent.profile === 'user' ? 1000 : 0
  for (const item of artifacts.items) await restoreArtifact(box, item, { owner, signal })
  if (!task.data.verifier.uploadTests) return
  await box.putFiles('/tests', { fromDirectory: join(task.source, 'tests'), uid: 0, gid: 0 })
  const user = task.data.verifier.user ?? 'root'
  const closed = await box.exec(
    { command: ['/bin/sh', '-c', 'chown -R -- "$1" /tests && chmod 700 /tests', 'sh', user], cwd: '/' },
    { signal },
  )
  if (closed.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${closed.why.detail}`)
  if (closed.kind !== 'exited' || closed.code !== 0) {
    throw new PaddockError('VERIFIER_FAILED', `The tests of ${task.name} could not be put into the verifier's box`)
  }
}

function draftOf(outcome: CheckOutcome, facts: DraftFacts): VerdictDraft {
  switch (outcome.kind) {
    case 'measured':
      return scored(outcome.reward, { ...facts, components: outcome.components })
    case 'broken':
      return unscored('unscorable', outcome.reason, facts)
    case 'fault':
      return unscored('infra_error', outcome.reason, facts)
  }
}

function evidenceOf(output: string, artifacts: Artifacts): string {
  const refused = artifacts.items.flatMap((item) =>
    item.content.refused.slice(0, 20).map((entry) => `left out: ${item.path}/${entry.path} (${entry.reason})`),
  )
  return [...refused, output].join('\n')
}
