import { z } from 'zod'
import { PaddockError, sha256 } from '../../core/index.ts'
import { type DraftFacts, scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import type { BoxNeeds, Environment, NamedScript, Tool } from '../contract.ts'
import { defineEnvironment } from '../define.ts'
import { perAttempt } from '../per-attempt.ts'
import { plainBox } from '../plain-box.ts'
import { acted, factsOf, recordAmong } from '../side-server/index.ts'
import { type Offered, type OpenEnvData, openEnvDataSchema } from './data.ts'
import {
  Episode,
  type EpisodeRecord,
  type OpenEnvServer,
  recordName,
  recordSchema,
  rewardOf,
  type RewardOf,
} from './episode.ts'
import { loadOpenEnvTasks } from './load.ts'
import { observationText } from './text.ts'

/** Options of {@link openEnvEnvironment}. */
export interface OpenEnvOptions {
  /** What tasks and commands call the environment: lower case, digits and dashes. */
  readonly name: string
  /** Version of the environment that is served, and of its scoring: part of every verdict. */
  readonly version: string
  readonly server: OpenEnvServer
  /** What of the rewards of the steps is the rollout's: their sum, or the last one that was told. Default: the sum. */
  readonly reward?: RewardOf
  /** How long the server may take for one answer, in milliseconds. Default: one minute. */
  readonly answerMs?: number
  /** What the agent's box must be beside the default: `paddock-base`, user `agent`, no network. */
  readonly box?: Partial<BoxNeeds>
}

/**
 * An environment that an OpenEnv server serves: its own code says where an episode starts, what each step comes to and what
 * it earns. The agent works in a box and finds the environment's MCP tools there, or, where it has none, a tool `step`
 * with the schema of its actions. Every fault of the server is one of infrastructure, never a reward.
 *
 * @param options - Where it is served, and what it is called.
 * @returns An environment, for `environments` in the configuration or the default export of a file for `--env`.
 * @example
 * openEnvEnvironment({
 *   name: 'lock',
 *   version: '1',
 *   server: { command: ['python', 'lock.py', '{port}'] },
 * })
 */
export function openEnvEnvironment(options: OpenEnvOptions): Environment {
  const { name, version, server, reward = 'sum', answerMs = 60_000 } = options
  const episodes = perAttempt((): { now: Episode | null } => ({ now: null }))

  const toolOf = (offered: Offered, kind: OpenEnvData['steps']): Tool => ({
    ...offered,
    // The environment's own code checks the arguments, and says what is wrong with them.
    input: z.record(z.string(), z.unknown()),
    run: async (context, input) => {
      const given = z.record(z.string(), z.unknown()).safeParse(input)
      if (!given.success) return { status: 'error', text: 'Invalid arguments: they are not an object' }
      const { now } = episodes(context)
      if (now === null) return { status: 'infra', text: 'The environment was not set up for this attempt.' }
      return acted(context.signal, () => now.step(offered.name, given.data, kind))
    },
  })

  return defineEnvironment<OpenEnvData>({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: openEnvDataSchema,
    load: (path, o) => loadOpenEnvTasks(path, { ...o, name, server, answerMs }),
    box: () => ({ ...plainBox, ...options.box }),
    setup: async (context) => {
      const { task, box, signal } = context
      const held = episodes(context)
      await held.now?.[Symbol.asyncDispose]()
      const episode = await Episode.begin(server, { answerMs, reward, signal })
      held.now = episode
      // However the attempt ends, its box does.
      void box.died.then(() => episode[Symbol.asyncDispose]())
      const start = observationText(await episode.reset(task.data.reset))
      if (start === task.data.start) return
      throw new PaddockError(
        'ENVIRONMENT_SETUP_FAILED',
        `The reset of ${task.name} starts elsewhere than when the task was loaded: ${start.slice(0, 300)}`,
        { fix: 'Give the reset what decides where it starts, such as a seed, or serve one start only.' },
      )
    },
    tools: ({ data }) => data.tools.map((offered) => toolOf(offered, data.steps)),
    collect: async (context) => {
      const { box, signal } = context
      await box.killBackground()
      await box.freeze()
      signal.throwIfAborted()
      const { now } = episodes(context)
      if (now === null) throw new PaddockError('ENVIRONMENT_SETUP_FAILED', 'There is no episode to score')
      const item = await now.record()
      await now[Symbol.asyncDispose]()
      return { items: [item] }
    },
    verify: async ({ task, artifacts, signal }) => {
      signal.throwIfAborted()
      const about = JSON.stringify([name, version, server, reward])
      const verifier = { id: `${name}/${task.name}`, version, sha256: sha256(about) }
      return verdictOf(recordAmong(artifacts, recordName, recordSchema), reward, await factsOf(artifacts, verifier))
    },
    scripts: {
      oracle: async ({ data }) => named('oracle', data.oracle ?? [{ say: 'Nobody has said how this is solved.' }]),
      cheats: async ({ data }) => (data.cheats ?? []).map((steps, at) => named(`cheat ${at + 1}`, steps)),
    },
  })
}

function verdictOf(record: EpisodeRecord | null, how: RewardOf, facts: DraftFacts): VerdictDraft {
  if (record === null) return unscored('infra_error', 'There is no record of an episode.', facts)
  const { steps } = record
  const earned = rewardOf(steps, how)
  if (earned === null && steps.at(-1)?.done === true) {
    return unscored('unscorable', 'The environment ended the episode and gave no number.', facts)
  }
  const reward = earned ?? 0
  const end = steps.at(-1)?.done === true ? 'the environment ended it' : 'the agent stopped'
  const evidence = `${steps.length} steps with the rewards ${JSON.stringify(steps.map((step) => step.reward))}; ${end}.`
  return scored(reward, { ...facts, components: { reward }, evidence })
}

function named(name: string, steps: NamedScript['script']['steps']): NamedScript {
  return { name, weight: 1, script: { steps } }
}
