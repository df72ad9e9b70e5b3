import { join } from 'node:path'
import type { ImageRecipe } from '../../sandbox/index.ts'
import type { BoxNeeds, Environment } from '../contract.ts'
import { defineEnvironment, type TaskOf } from '../define.ts'
import { collectArtifacts } from './collect.ts'
import { type TerminalData, terminalDataSchema } from './data.ts'
import { factsOf, isOwnBase } from './dockerfile.ts'
import { breakIns, repairs } from './generate/index.ts'
import { loadTasks } from './load.ts'
import { outsideWork } from './outside.ts'
import { writeProof } from './proof-file.ts'
import { cheatsOf, distractorsOf, oracleOf, solutionsOf } from './scripts.ts'
import { setUp } from './setup.ts'
import { shellToolFor } from './shell-tool.ts'
import { stepsOf } from './steps.ts'
import type { PublicNetwork } from './support.ts'
import { terminalVerifierVersion, verifyArtifacts } from './verify.ts'

/** Options of {@link terminalEnvironment}. */
export interface TerminalOptions {
  /** Tasks whose format asks for a public network: refused (default), run without any, or with the public internet. */
  readonly publicNetwork?: PublicNetwork
}

/**
 * Tasks in Harbor's folder format (`task.toml` schema 1.4): a box with a shell, an instruction, tests that look at what
 * the agent left behind in a fresh box of their own.
 */
export function terminalEnvironment(options: TerminalOptions = {}): Environment {
  const publicNetwork = options.publicNetwork ?? 'refuse'
  return defineEnvironment({
    name: 'terminal',
    apiVersion: 1,
    verifierVersion: terminalVerifierVersion,
    task: terminalDataSchema,
    generators: [breakIns, repairs],
    load: (path, o) => loadTasks(path, { ...o, publicNetwork }),
    box: agentNeeds,
    verifierBox: ({ data, ...task }) => (data.verifier.shared === true ? null : verifierNeeds({ ...task, data })),
    setup: setUp,
    resumesFromFiles: true,
    tools: (task) => [shellToolFor(agentNeeds(task))],
    systemPrompt: (task) =>
      'You work in a Linux box through the tool `shell`. Solve the task that the user gives, check your work, ' +
      'and say in one sentence what you did when it is finished. ' +
      (task.data.agent.network === 'none' ? 'There is no network and nobody to ask.' : 'There is nobody to ask.'),
    steps: stepsOf,
    collect: collectArtifacts,
    verify: (context) => verifyArtifacts(context, verifierNeeds(context.task)),
    outside: outsideWork,
    keepProof: (task, proofs) => writeProof(task, proofs, terminalVerifierVersion),
    scripts: { oracle: oracleOf, solutions: solutionsOf, cheats: cheatsOf, distractors: distractorsOf },
  })
}

/** The terminal environment with its defaults. */
export const terminal: Environment = terminalEnvironment()

function agentNeeds(task: TaskOf<TerminalData>): BoxNeeds {
  const { agent, verifier } = task.data
  return {
    ...limitsOf(task, agent),
    diskMb: agent.storageMb,
    ...(agent.setupNetwork === undefined ? {} : { setupNetwork: agent.setupNetwork }),
    profile: agent.profile,
    user: agent.user,
    agentTimeoutMs: agent.timeoutMs,
    // A verifier without a result is tried twice on what the agent left, and twice without it (verify.ts).
    verifyTimeoutMs: verifier.timeoutMs * 4,
  }
}

// The verifier is root in its own box, so that it can run the agent's code as somebody who is not.
function verifierNeeds(task: TaskOf<TerminalData>): BoxNeeds {
  const { verifier } = task.data
  return {
    ...limitsOf(task, verifier),
    // Wider than the agent's: what the agent's code writes while it is tested must not end the test.
    diskMb: verifier.storageMb * 4,
    profile: 'root',
    user: verifier.user,
    agentTimeoutMs: null,
    verifyTimeoutMs: verifier.timeoutMs,
  }
}

function limitsOf(
  task: TaskOf<TerminalData>,
  box: TerminalData['agent'] | TerminalData['verifier'],
): Omit<BoxNeeds, 'profile' | 'user' | 'agentTimeoutMs' | 'verifyTimeoutMs'> {
  return {
    image: recipeOf(task, box.image),
    ...(isOfOthers(box.image) ? { heedsImage: true } : {}),
    workdir: box.workdir,
    env: box.env,
    cpus: box.cpus,
    memoryMb: box.memoryMb,
    fileMb: box.storageMb,
    network: box.network,
  }
}

/** What a base of ours says is known at loading; a base of somebody else has words of its own. */
function isOfOthers(image: TerminalData['agent']['image']): boolean {
  return image.kind === 'reference' || !isOwnBase(factsOf(image.dockerfile).base)
}

function recipeOf(task: TaskOf<TerminalData>, image: TerminalData['agent']['image']): ImageRecipe {
  if (image.kind === 'reference') return { kind: 'reference', reference: image.reference }
  const suffix = image.directory === 'tests' ? '-tests' : ''
  return {
    kind: 'dockerfile',
    name: `${task.name}${suffix}`,
    dockerfile: image.dockerfile,
    context: join(task.source, image.directory),
    ...(image.buildTimeoutMs === undefined ? {} : { timeoutMs: image.buildTimeoutMs }),
  }
}
