import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { FleetStatus, PauseOutcome, WeightsOutcome } from '../../proxy/index.ts'
import type { OverNodes, Shelved } from '../../rollout/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { ownerOf } from '../find-owner.ts'
import { exitCode } from '../exit.ts'
import { table } from '../present/table.ts'
import { duration, plural } from '../present/units.ts'

type Outcome = PauseOutcome & Shelved & OverNodes

interface PauseOptions {
  readonly mode: string
  readonly cache: string
  readonly timeout?: number
}

interface WeightsOptions extends PauseOptions {
  readonly post?: readonly { readonly path: string; readonly body: unknown }[]
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
    .addHelpText(
      'after',
      `
Example:
  $ paddock engine weights step-12 --mode abort-resubmit --post '/update_weights_from_disk={"model_path":"/ckpt/12"}'`,
    )
    .action(async (version: string, options: WeightsOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        const order = { ...orderOf(options), version, requests: options.post ?? [] }
        const outcome = (await ask(context, 'POST', '/engine/weights', order)) as WeightsOutcome & Outcome
        context.result(
          outcome,
          () => `weights ${version} on ${plural(outcome.replicas.length, 'replica')}: ${outcomeText(outcome)}`,
        )
        return exitCode.ok
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

function orderOf({ mode, cache, timeout }: PauseOptions): object {
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
    one.weightVersion ?? '?',
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

function outcomeText({ interrupted, drained, kept, shelved, durationMs, nodes }: Outcome): string {
  const aside = shelved === 0 ? '' : `${plural(shelved, 'rollout')} shelved, `
  const here = `${aside}${interrupted} interrupted, ${drained} drained, ${kept} kept, in ${duration(durationMs)}`
  const { answered, slowest, passed } = nodes
  const last = slowest === null ? '' : `, ${slowest.node} last after ${duration(slowest.durationMs)}`
  const there = answered === 0 ? [] : [`${plural(answered, 'node')} likewise${last}`]
  const lost = passed.map(({ node, why }) => `${node} was passed over (${why}): its jobs go to others`)
  return [here, ...there, ...lost].join('\n')
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
