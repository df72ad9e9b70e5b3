import { z } from 'zod'
import { PaddockError, sha256 } from '../../core/index.ts'
import { scored, unscored } from '../../reward/index.ts'
import type { BoxNeeds, Environment, NamedScript, Tool } from '../contract.ts'
import { defineEnvironment } from '../define.ts'
import { clipped } from '../outcome.ts'
import { perAttempt } from '../per-attempt.ts'
import { plainBox } from '../plain-box.ts'
import { acted, factsOf, recordAmong, recordItem } from '../side-server/index.ts'
import { type NemoGymData, nemoGymDataSchema, type Offered } from './data.ts'
import { loadNemoGymTasks } from './load.ts'
import { scoreSchema, type Served, Session } from './session.ts'

/** Options of {@link nemoGymEnvironment}. */
export interface NemoGymOptions {
  /** What tasks and commands call the environment: lower case, digits and dashes. */
  readonly name: string
  /** Version of the server's package, and so of its scoring: part of every verdict. */
  readonly version: string
  /** The resources server's program: a module of the Python, such as `resources_servers.example_multi_step.app`, or the path of an `app.py`. */
  readonly app: string
  /** The server's own settings, as its YAML has them. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Further entries of NeMo Gym's configuration, such as the model server of a judge that runs already, with `host` and `port`. */
  readonly others?: Readonly<Record<string, unknown>>
  /** A Python with NeMo Gym and what the server needs. Default: `python` of the `PATH`. */
  readonly python?: string
  /** What it has of variables beside `PATH`, `HOME`, `LANG` and `TMPDIR`. */
  readonly env?: Readonly<Record<string, string>>
  /** How long it may take until it is healthy, in milliseconds. Default: two minutes. */
  readonly startMs?: number
  /** How long one answer, the verification included, may take, in milliseconds. Default: one minute. */
  readonly answerMs?: number
  /** What the agent's box must be beside the default: `paddock-base`, user `agent`, no network. */
  readonly box?: Partial<BoxNeeds>
}

/**
 * A resources server of NeMo Gym: its own code keeps the session's state, answers tools and gives the number. The agent works in a box and finds the tools of its row
 * there; its calls and what it says at last are the response that the server verifies. Every fault of the server is one of infrastructure, never a reward.
 *
 * @param options - Which server it is, and what it is called.
 * @returns An environment, for `environments` in the configuration or the default export of a file for `--env`.
 * @example
 * nemoGymEnvironment({ name: 'synonyms', version: '0.7.0', app: 'resources_servers.example_multi_step.app' })
 */
export function nemoGymEnvironment(options: NemoGymOptions): Environment {
  const { name, version, app, settings = {}, others = {}, python = 'python', env = {}, answerMs = 60_000 } = options
  const served: Served = { name, app, settings, others, python, env, startMs: options.startMs ?? null, answerMs }
  const sessions = perAttempt((): { now: Session | null } => ({ now: null }))

  const toolOf = ({ name: tool, description, inputSchema }: Offered): Tool => ({
    name: tool,
    description,
    inputSchema,
    // The server's own code checks the arguments, and says what is wrong with them.
    input: z.record(z.string(), z.unknown()),
    run: async (context, input) => {
      const given = z.record(z.string(), z.unknown()).safeParse(input)
      if (!given.success) return { status: 'error', text: 'Invalid arguments: they are not an object' }
      const { now } = sessions(context)
      if (now === null) return { status: 'infra', text: 'The environment was not set up for this attempt.' }
      return acted(context.signal, async () => {
        const { text, refused } = await now.act(tool, given.data)
        return { status: refused ? 'error' : 'ok', text: clipped(text) }
      })
    },
  })

  return defineEnvironment<NemoGymData>({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: nemoGymDataSchema,
    load: (path, { signal = new AbortController().signal }) => loadNemoGymTasks(path, served, signal),
    box: () => ({ ...plainBox, ...options.box }),
    setup: async (context) => {
      const { task, box, signal } = context
      const held = sessions(context)
      await held.now?.[Symbol.asyncDispose]()
      const session = await Session.begin(served, task.data.row, signal)
      held.now = session
      // However the attempt ends, its box does.
      void box.died.then(() => session[Symbol.asyncDispose]())
    },
    systemPrompt: ({ data }) => data.system,
    tools: ({ data }) => data.tools.map(toolOf),
    collect: async (context) => {
      const { box, signal, lastSaid } = context
      await box.killBackground()
      await box.freeze()
      signal.throwIfAborted()
      const { now } = sessions(context)
      if (now === null) throw new PaddockError('ENVIRONMENT_SETUP_FAILED', 'There is no session to verify')
      const score = await now.verify((await lastSaid?.()) ?? null)
      await now[Symbol.asyncDispose]()
      return { items: [recordItem('nemo-gym', score)] }
    },
    verify: async ({ task, artifacts, signal }) => {
      signal.throwIfAborted()
      const about = JSON.stringify([name, version, app, settings])
      const facts = await factsOf(artifacts, { id: `${name}/${task.name}`, version, sha256: sha256(about) })
      const score = recordAmong(artifacts, 'nemo-gym', scoreSchema)
      if (score === null) return unscored('infra_error', 'There is no score of a session.', facts)
      const { reward, components, output } = score
      const evidence = `${output.length} items; ${JSON.stringify(components)}.`
      return scored(reward, { ...facts, components: { ...components, reward }, evidence })
    },
    scripts: {
      oracle: async ({ data }) => named('oracle', data.oracle ?? [{ say: 'Nobody has said how this is solved.' }]),
      cheats: async ({ data }) => (data.cheats ?? []).map((steps, at) => named(`cheat ${at + 1}`, steps)),
    },
  })
}

function named(name: string, steps: NamedScript['script']['steps']): NamedScript {
  return { name, weight: 1, script: { steps } }
}
