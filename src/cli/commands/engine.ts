import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { Adapter, FleetStatus, PauseOutcome, WeightsOutcome } from '../../proxy/index.ts'
import type { OverNodes, Shelved } from '../../rollout/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { ownerOf } from '../find-owner.ts'
import { exitCode } from '../exit.ts'
import { table } from '../present/table.ts'
import { duration, plural } from '../present/units.ts'

interface PauseOrder {
  readonly mode: string
  readonly cache: string
  readonly timeoutMs?: number
}

type Outcome = PauseOutcome & Shelved & OverNodes

interface PauseOptions {
  readonly mode: string
  readonly cache: string
  readonly timeout?: number
}

interface WeightsOptions extends PauseOptions {
  readonly post?: readonly { readonly path: string; readonly body: unknown }[]
  readonly adapter?: Adapter
}

/** `paddock engine`: what a trainer says to the engine, through the process that owns the data directory. */
export function addEngine(program: Command, cli: Cli): void {
  const engine = program
    .command('engine')
    .description(
      'the replicas of the engine of a running `paddock serve` or `paddock run`: how they stand, pause, new weights',
    )
    .addHelpText('after', '\nExample:\n  $ paddock engine status')
  engine
    .command('status')
    .description('how each replica stands')
    .addHelpText('after', '\nExample:\n  $ paddock engine status')
    .action(async (_options: unknown, command: Command) =>
      cli.run(command, {}, async (context) => {
        const status = (await ask(context, 'GET', '/engine')) as FleetStatus
        context.result(status, () => statusText(status, context))
        return status.replicas.every(({ state }) => state === 'serving') ? exitCode.ok : exitCode.problems
      }),
    )
  pauseOptions(engine.command('pause').description('make new generations wait; answers when what runs is dealt with'))
    .addHelpText('after', '\nExample:\n  $ paddock engine pause --mode abort-resubmit')
    .action(async (options: PauseOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        const outcome = (await ask(context, 'POST', '/engine/pause', orderOf(options))) as Outcome
        context.result(outcome, () => `paused: ${outcomeText(outcome)}`)
        return exitCode.ok
      }),
    )
  engine
    .command('resume')
    .description('end a pause; engines that another process left frozen go on too')
    .addHelpText('after', '\nExample:\n  $ paddock engine resume')
    .action(async (_options: unknown, command: Command) =>
      cli.run(command, {}, async (context) => {
        const status = (await ask(context, 'POST', '/engine/resume', {})) as FleetStatus
        context.result(status, () => statusText(status, context))
        return exitCode.ok
      }),
    )
  pauseOptions(
    engine
      .command('weights')
      .argument('<version>')
      .description('tell the replicas and the record that there are new weights'),
  )
    .option('--post <path=json>', 'post this to each replica in between; may be repeated', collectPost)
    .option(
      '--adapter <name=path>',
      'they are this LoRA adapter: each replica loads it, or has it where no path is given; nothing is paused',
      adapterOf,
    )
    .addHelpText(
      'after',
      `
Example:
  $ paddock engine weights step-12 --mode abort-resubmit --post '/update_weights_from_disk={"model_path":"/ckpt/12"}'
  $ paddock engine weights step-13 --adapter step-13=/ckpt/13`,
    )
    .action(async (version: string, options: WeightsOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        const { adapter, post = [] } = options
        const isGiven = (name: string): boolean => command.getOptionValueSource(name) === 'cli'
        const { mode, cache, ...rest } = orderOf(options)
        // Defaults are for a pause, which an adapter has none of; what was given is refused by name.
        const pause = { ...(isGiven('mode') ? { mode } : {}), ...(isGiven('cache') ? { cache } : {}) }
        const order = { ...rest, ...pause, version, requests: post, ...(adapter === undefined ? {} : { adapter }) }
        const outcome = (await ask(context, 'POST', '/engine/weights', order)) as WeightsOutcome & Outcome
        context.result(outcome, () => weightsText(outcome))
        return outcome.out.length === 0 ? exitCode.ok : exitCode.problems
      }),
    )
}

function pauseOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--mode <mode>', 'what becomes of running generations')
        .choices(['drain', 'keep', 'abort-resubmit'])
        .default('drain'),
    )
    .addOption(
      new Option('--cache <what>', 'mode keep: the KV cache of what runs is computed anew, or kept')
        .choices(['clear', 'keep'])
        .default('clear'),
    )
    .option('--timeout <seconds>', 'how long running generations are waited for', wholeNumber(1))
}

function orderOf({ mode, cache, timeout }: PauseOptions): PauseOrder {
  return { mode, cache, ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }) }
}

/** Asks the owner's control API. Throws what it answers; `NOT_FOUND` where nobody owns the directory. */
async function ask(context: CommandContext, method: string, path: string, body?: object): Promise<unknown> {
  const { ownerError } = await import('../at-owner.ts')
  const { store } = context.loaded.config
  const owner = await ownerOf(context)
  if (owner === null) {
    throw new PaddockError('NOT_FOUND', `no running Paddock owns ${store.directory}`, {
      fix: 'Start `paddock serve` or `paddock run` with this data directory, or name theirs with --data.',
    })
  }
  const { Agent, fetch } = await import('undici')
  const answer = await fetch(`${owner.origin}${path}`, {
    method,
    headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: context.io.signal,
    // A pause answers when everything has been waited for.
    dispatcher: new Agent({ headersTimeout: 0 }),
  })
  const said: unknown = await answer.json()
  if (!answer.ok) throw ownerError(said, owner, 'refuses')
  return said
}

function statusText(status: FleetStatus, { paint, io }: CommandContext): string {
  const header = ['replica', 'state', 'running', 'sessions', 'weights', 'failures', 'ejections', 'last error']
  const rows = status.replicas.map((one) => [
    one.url,
    paint(one.state === 'serving' ? 'good' : 'warn', one.state),
    String(one.inFlight),
    String(one.sessions),
    `${one.weightVersion ?? '?'}${one.adapter === null ? '' : ` (${one.adapter})`}`,
    String(one.failures),
    String(one.ejections),
    one.lastError ?? '',
  ])
  const columns = header.map((title) => ({ title }))
  const paused =
    status.paused === null
      ? 'generation goes on'
      : `paused (${status.paused}), ${plural(status.waiting, 'call')} waiting`
  return `${table(columns, rows, { paint, columns: io.columns })}\n${paused}`
}

function weightsText({ version, adapter, replicas, out, ...rest }: WeightsOutcome & Outcome): string {
  const how = adapter === undefined ? outcomeText(rest) : nodesText(rest).join('\n')
  const without = out.map(({ url, why }) => `${url} gets no calls: ${why}`)
  const what = `weights ${version} on ${plural(replicas.length - out.length, 'replica')}`
  return [how === '' ? what : `${what}: ${how}`, ...without].join('\n')
}

function outcomeText({ interrupted, drained, kept, shelved, durationMs, nodes }: Outcome): string {
  const aside = shelved === 0 ? '' : `${plural(shelved, 'rollout')} shelved, `
  const here = `${aside}${interrupted} interrupted, ${drained} drained, ${kept} kept, in ${duration(durationMs)}`
  return [here, ...nodesText({ nodes })].join('\n')
}

function nodesText({ nodes: { answered, slowest, passed } }: OverNodes): readonly string[] {
  const last = slowest === null ? '' : `, ${slowest.node} last after ${duration(slowest.durationMs)}`
  const there = answered === 0 ? [] : [`${plural(answered, 'node')} likewise${last}`]
  return [...there, ...passed.map(({ node, why }) => `${node} was passed over (${why}): its jobs go to others`)]
}

function adapterOf(text: string): Adapter {
  const at = text.indexOf('=')
  const [name, path] = at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)]
  if (name === '' || path === '') throw new InvalidArgumentError('Give name=path, or the name alone.')
  return { name, path }
}

function collectPost(
  text: string,
  before: readonly { readonly path: string; readonly body: unknown }[] = [],
): readonly { readonly path: string; readonly body: unknown }[] {
  const at = text.indexOf('=')
  try {
    return [
      ...before,
      { path: text.slice(0, at === -1 ? undefined : at), body: at === -1 ? {} : JSON.parse(text.slice(at + 1)) },
    ]
  } catch {
    throw new InvalidArgumentError('Give path=json.')
  }
}
