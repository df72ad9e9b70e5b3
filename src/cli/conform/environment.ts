import { z } from 'zod'
import { makeTask, sha256, type Task } from '../../core/index.ts'
import { defineEnvironment, defineTool, type Environment, type ScriptStep, toolOutcome } from '../../envs/index.ts'
import { unscored } from '../../reward/index.ts'

const name = 'conform'
/** Where the harness's shell begins. */
export const workdir = '/workspace'
const data = z.strictObject({ steps: z.array(z.custom<ScriptStep>()) })

/** Runs a line of bash: what the reference agent is offered. Harnesses in a box bring their own. */
const shell = defineTool({
  name: 'shell',
  description: 'Runs a command line with bash and returns its output.',
  input: z.object({ command: z.string().min(1) }),
  nativeToHarness: true,
  run: async ({ box, signal }, { command }) => toolOutcome(await box.exec({ command }, { signal })),
})

/** Where probes are run: a plain box with a shell. What is looked at is the wire, so nothing is scored. */
export const conformEnvironment: Environment = defineEnvironment({
  name,
  apiVersion: 1,
  verifierVersion: '1',
  task: data,
  load: async () => [],
  box: () => ({
    image: { kind: 'paddock-base' },
    profile: 'user',
    workdir,
    user: null,
    env: {},
    network: 'none',
    agentTimeoutMs: null,
    verifyTimeoutMs: null,
  }),
  tools: () => [shell],
  resumesFromFiles: true,
  collect: async () => ({ items: [] }),
  verify: async ({ task }) =>
    unscored('unscorable', 'a probe is looked at, not scored', {
      verifier: { id: `${name}/${task.name}`, version: '1', sha256: sha256(name) },
      trust: 'host',
    }),
  scripts: {
    oracle: async (task) => ({ name: 'only', weight: 1, script: { steps: task.data.steps } }),
    cheats: async () => [],
  },
})

/** A task of it: what the harness is asked, and what the scripted engine does about that. */
export function probeTask(o: {
  readonly name: string
  readonly instruction: string
  readonly steps: readonly ScriptStep[]
}): Task {
  const { steps, ...rest } = o
  return makeTask({ ...rest, environment: name, split: 'test', data: { steps }, source: '' })
}
