import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { PaddockError, sha256 } from '../../core/index.ts'
import { scored, unscored } from '../../reward/index.ts'
import type { BoxNeeds, Environment, NamedScript, Tool, ToolOutcome } from '../contract.ts'
import { defineEnvironment } from '../define.ts'
import { clipped } from '../outcome.ts'
import { perAttempt } from '../per-attempt.ts'
import { plainBox } from '../plain-box.ts'
import { acted, factsOf, recordAmong, recordItem } from '../side-server/index.ts'
import { type Offered, type VerifiersData, verifiersDataSchema } from './data.ts'
import { loadVerifiersTasks, sayTool } from './load.ts'
import { type Loading, scoreSchema, Sidecar } from './sidecar.ts'

/** Options of {@link verifiersEnvironment}. */
export interface VerifiersOptions {
  /** What tasks and commands call the environment: lower case, digits and dashes. */
  readonly name: string
  /** Version of the environment's package, and so of its scoring: part of every verdict. */
  readonly version: string
  /** What `verifiers.load_environment` is given: the environment's id, or its module. */
  readonly load: string
  /** Arguments of its `load_environment`. */
  readonly args?: Readonly<Record<string, unknown>>
  /** A Python with verifiers and the environment. Default: `python` of the `PATH`. */
  readonly python?: string
  /** What it has of variables beside `PATH`, `HOME`, `LANG` and `TMPDIR`. */
  readonly env?: Readonly<Record<string, string>>
  /** The OpenAI-compatible server that the environment's rubric may ask to judge, in place of its own. Left out: one that asks is refused. */
  readonly judge?: { readonly url: string; readonly model: string; readonly key?: string }
  /** How long it may take until it is loaded, in milliseconds. Default: two minutes. */
  readonly startMs?: number
  /** How long one act, or the scoring, may take, in milliseconds. Default: one minute. */
  readonly answerMs?: number
  /** What the agent's box must be beside the default: `paddock-base`, user `agent`, no network. */
  readonly box?: Partial<BoxNeeds>
}

/**
 * An environment of Prime Intellect's `verifiers`, as its package has it: rows of its data set are tasks, its tools are offered to the
 * agent, and its own loop and rubric score the conversation. Its process runs beside the agent's box, one for each attempt. Every
 * fault of it, a reward function that raises included, is one of infrastructure, never a reward.
 *
 * @param options - Which environment, and what it is called.
 * @returns An environment, for `environments` in the configuration or the default export of a file for `--env`.
 * @example
 * verifiersEnvironment({
 *   name: 'advocacy',
 *   version: '0.1.6',
 *   load: 'sophistry-bench-sprint',
 * })
 */
export function verifiersEnvironment(options: VerifiersOptions): Environment {
  const { name, version, load, args = {}, python = 'python', env = {}, judge = null, answerMs = 60_000 } = options
  const loading: Loading = { name, load, args, python, env, judge, startMs: options.startMs ?? null, answerMs }
  const sidecars = perAttempt((): { now: Sidecar | null } => ({ now: null }))

  const toolOf = ({ name: tool, description, inputSchema }: Offered, sent: string | null): Tool => ({
    name: tool,
    description,
    inputSchema,
    // The environment's own code checks the arguments, and says what is wrong with them.
    input: z.record(z.string(), z.unknown()),
    run: async (context, input) => {
      const given = z.record(z.string(), z.unknown()).safeParse(input)
      if (!given.success) return { status: 'error', text: 'Invalid arguments: they are not an object' }
      if (sent === null && typeof given.data['text'] !== 'string') return { status: 'error', text: 'Give `text`.' }
      const { now } = sidecars(context)
      if (now === null) return { status: 'infra', text: 'The environment was not set up for this attempt.' }
      return acted(context.signal, () => outcome(now, sent, given.data))
    },
  })

  return defineEnvironment<VerifiersData>({
    name,
    apiVersion: 1,
    verifierVersion: version,
    task: verifiersDataSchema,
    load: (path, { signal = new AbortController().signal }) => loadVerifiersTasks(path, { loading, signal }),
    box: () => ({ ...plainBox, ...options.box }),
    setup: async (context) => {
      const { task, box, signal } = context
      const held = sidecars(context)
      await held.now?.[Symbol.asyncDispose]()
      const sidecar = await Sidecar.start(loading, signal)
      held.now = sidecar
      // However the attempt ends, its box does.
      void box.died.then(() => sidecar[Symbol.asyncDispose]())
      const { system, user } = task.data
      const shown = await sidecar.begin(task.data.row, task.data.at)
      if (isDeepStrictEqual(shown, { system, user })) return
      throw new PaddockError(
        'ENVIRONMENT_SETUP_FAILED',
        `${task.name} begins with another prompt than when it was loaded: ${shown.user.slice(0, 300)}`,
        { fix: 'Give the environment arguments that decide where it starts, such as a seed.' },
      )
    },
    systemPrompt: ({ data }) => data.system,
    tools: ({ data }) => [
      ...data.tools.map((offered) => toolOf(offered, offered.name)),
      ...(data.speaks ? [toolOf(saying, null)] : []),
    ],
    collect: async (context) => {
      const { box, signal, lastSaid } = context
      await box.killBackground()
      await box.freeze()
      signal.throwIfAborted()
      const { now } = sidecars(context)
      if (now === null) throw new PaddockError('ENVIRONMENT_SETUP_FAILED', 'There is no episode to score')
      const score = await now.finish((await lastSaid?.()) ?? null)
      await now[Symbol.asyncDispose]()
      return { items: [recordItem(recordName, score)] }
    },
    verify: async ({ task, artifacts, signal }) => {
      signal.throwIfAborted()
      const about = JSON.stringify([name, version, load, args, judge?.model ?? null])
      const verifier = { id: `${name}/${task.name}`, version, sha256: sha256(about) }
      const facts = await factsOf(artifacts, verifier)
      const score = recordAmong(artifacts, recordName, scoreSchema)
      if (score === null) return unscored('infra_error', 'There is no score of an episode.', facts)
      const { reward, metrics, stop, completion } = score
      const evidence = `${completion.length} messages; it ended by ${stop ?? 'itself'}; ${JSON.stringify(metrics)}.`
      return scored(reward, { ...facts, components: { ...metrics, reward }, evidence })
    },
    scripts: {
      oracle: async ({ data }) => named('oracle', data.oracle ?? [{ say: 'Nobody has said how this is solved.' }]),
      cheats: async ({ data }) => (data.cheats ?? []).map((steps, at) => named(`cheat ${at + 1}`, steps)),
    },
  })
}

const recordName = 'verifiers'
const over = '[The episode is over.]'

const saying: Offered = {
  name: sayTool,
  description: 'Says something to the environment, which answers.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}

async function outcome(
  sidecar: Sidecar,
  tool: string | null,
  args: Readonly<Record<string, unknown>>,
): Promise<ToolOutcome> {
  const acting = await sidecar.act(tool, args)
  if (acting.text === null) return { status: 'error', text: 'The episode is over: the environment takes no more acts.' }
  const lines = [clipped(acting.text), acting.over ? over : '']
  return { status: 'ok', text: lines.filter((line) => line !== '').join('\n') }
}

function named(name: string, steps: NamedScript['script']['steps']): NamedScript {
  return { name, weight: 1, script: { steps } }
}
