import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { z } from 'zod'
import { type Id, PaddockError } from '../../core/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { environmentFinder } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import type { Owner } from '../owner.ts'
import { shortId } from '../present/units.ts'
import { packageDirectory } from '../version.ts'

const question = 'How many days does February 2028 have? Use the shell.'
const wanted = '29'
/** What the scripted engine does in each attempt; one of them looks at the wrong day. */
const attempts: readonly (readonly Readonly<Record<string, string>>[])[] = [
  [
    { think: '2028 is divisible by four. I will check in the shell to be sure.' },
    { shell: 'date -u -d 2028-02-29 +%d' },
    { say: 'February 2028 has 29 days: it is a leap year.' },
  ],
  [{ shell: 'echo $(( 1 + 28 ))' }, { say: '29 days, from the first of February to the first of March.' }],
  [
    { think: 'February has 28 days. I will check whether that day exists.' },
    { shell: 'date -u -d 2028-02-28 +%d' },
    { say: 'February 2028 has 28 days.' },
  ],
  [{ shell: 'echo 2028 % 4 = $(( 2028 % 4 ))' }, { say: 'It is a leap year, so 29 days.' }],
]

/** `paddock quickstart`: a group of recorded and scored rollouts to look at, without Docker and without a model. */
export function addQuickstart(program: Command, cli: Cli): void {
  program
    .command('quickstart')
    .description(
      'record four attempts at one small task, score them, and say what to do next: no Docker, no model, seconds',
    )
    .addHelpText(
      'after',
      `
Example:
  $ paddock quickstart
  $ paddock view --annotate

A 30-line agent (examples/harness/agent.mjs of the package) asks the scripted engine, which is no language model: it runs prepared steps.
The agent runs here, as you, not in a box: its commands are \`date\` and \`echo\`. Three attempts get 1, one gets 0; find out why.`,
    )
    .action(async (_options: unknown, command: Command) =>
      cli.run(
        command,
        // Whatever engine is configured: what is shown needs the prepared steps.
        { engine: { url: null, model: null, apiKey: null, kind: 'auto' }, proxy: { port: 0 }, control: { port: 0 } },
        quickstart,
      ),
    )
}

async function quickstart(context: CommandContext): Promise<ExitCode> {
  const { io, paint } = context
  const { config } = context.loaded
  const { openOwner } = await import('../owner.ts')
  const { submitRun } = await import('../submit.ts')
  const { findTrainerRun } = await import('../execute.ts')
  const { selectorFor } = await import('../selectors.ts')
  const owner = await openOwner({
    config,
    openMode: false,
    signal: io.signal,
    submit: (inner, asked) => submitRun(inner, context.loaded, asked, io.signal),
    findRun: (inner, asked) => findTrainerRun(context.loaded, inner, asked, io.signal),
    findSelector: (name, part) => selectorFor(context.loaded, name, part),
    findEnvironment: environmentFinder(context.loaded),
  })
  const told: Attempt[] = []
  try {
    context.notice(`Recording ${attempts.length} attempts at: ${question}`)
    const control = new Control(owner, await tokenOf(config.store.directory))
    const { group } = await control.post('/groups', opened, {
      name: 'quickstart',
      task: { name: 'february', instruction: question },
      n: attempts.length,
    })
    for (const [nth, steps] of attempts.entries()) {
      if (io.signal.aborted) return exitCode.cancelled
      const one = await attempt(control, owner, { group: group.id, nth, steps, signal: io.signal })
      told.push(one)
      if (!context.json) {
        io.out(`${paint('name', shortId(one.rolloutId))}  reward ${one.reward}  ${one.answer}`)
      }
    }
    if (context.json) io.out(JSON.stringify({ runId: group.runId, groupId: group.id, rollouts: told }))
    else io.out(next(context, told))
  } finally {
    await owner.proxy.drain()
    await owner.close()
  }
  return exitCode.ok
}

interface Attempt {
  readonly rolloutId: Id
  readonly answer: string
  readonly reward: number
}

/** One rollout: opened, done by the agent, scored by what it said last. */
async function attempt(
  control: Control,
  owner: Owner,
  o: {
    readonly group: Id
    readonly nth: number
    readonly steps: (typeof attempts)[number]
    readonly signal: AbortSignal
  },
): Promise<Attempt> {
  const { found } = owner.engines
  const scripts = found?.scripted?.control
  if (scripts === undefined) throw new PaddockError('ENGINE_NONE', 'the scripted engine is not there')
  const script = { instruction: question, candidates: [{ name: `attempt ${o.nth + 1}`, weight: 1, steps: o.steps }] }
  await control.ask(`${scripts}/scripts`, script, z.unknown())
  const { rollout, key, baseUrl } = await control.post('/rollouts', openedRollout, {
    group: o.group,
    key: `attempt-${o.nth + 1}`,
  })
  const env = {
    OPENAI_BASE_URL: baseUrl,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: found?.model ?? '',
    PADDOCK_PROMPT: question,
  }
  const said = await agentSays(env, o.signal)
  const answer = said.trim().split('\n').at(-1) ?? ''
  const reward = new RegExp(`\\b${wanted}\\b`).test(answer) ? 1 : 0
  const evidence = `expected ${wanted} in the last line; the agent said: ${answer}\n\nAll that it printed:\n${said}`
  await control.post(`/rollouts/${rollout.id}/end`, z.unknown(), {
    end: 'completed',
    verdict: { source: 'quickstart', reward, components: { answer: reward }, evidence },
  })
  return { rolloutId: rollout.id, answer, reward }
}

/** Runs the example agent to its end. Throws `INTERNAL` where it fails. */
async function agentSays(env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string> {
  const agent = fileURLToPath(new URL('examples/harness/agent.mjs', packageDirectory))
  const child = spawn(process.execPath, [agent], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) {
    throw new PaddockError(
      'INTERNAL',
      `the example agent ended with ${code ?? 'a signal'}: ${errors.trim().slice(-500)}`,
    )
  }
  return out
}

const ids = z.looseObject({ id: z.string() })
const opened = z.looseObject({ group: ids.extend({ runId: z.string() }) })
const openedRollout = z.looseObject({ rollout: ids, key: z.string(), baseUrl: z.string() })

/** The control API of this process, as anybody's harness would use it (docs/guides/groups-of-your-own.md). */
class Control {
  readonly #owner: Owner
  readonly #token: string

  constructor(owner: Owner, token: string) {
    this.#owner = owner
    this.#token = token
  }

  post<T>(path: string, answer: z.ZodType<T>, body: unknown): Promise<T> {
    return this.ask(`${this.#owner.control.localOrigin}${path}`, body, answer)
  }

  async ask<T>(url: string, body: unknown, answer: z.ZodType<T>): Promise<T> {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await reply.text()
    if (!reply.ok) throw new PaddockError('INTERNAL', `${new URL(url).pathname} answered ${reply.status}: ${text}`)
    return answer.parse(JSON.parse(text))
  }
}

async function tokenOf(directory: string): Promise<string> {
  return (await readFile(join(directory, 'control-token'), 'utf8')).trim()
}

function next({ called, loaded, paint }: CommandContext, told: readonly Attempt[]): string {
  const { directory } = loaded.config.store
  const zero = shortId(told.find(({ reward }) => reward === 0)?.rolloutId ?? '')
  const data = resolve(directory) === resolve('.paddock') ? '' : ` --data ${directory}`
  return `
${paint('strong', 'What to do next')}
  ${called} view --annotate${data}
      open the printed link: the run, its failures, the one that got 0; read why, look at its calls, label it
  ${called} show ${zero}${data}
      the same rollout here, with its tokens
  ${called} search "28 days"${data}
      who said so
  ${called} export --format jsonl --out out/rows${data}
      rows for a trainer`
}
