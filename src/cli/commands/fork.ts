import type { Command } from 'commander'
import type { ConfigInput } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'
import type { RunRequest } from '../../server/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { injectHelp, readInjections } from '../injections.ts'
import { shortId } from '../present/units.ts'
import { resolveKind } from '../resolve.ts'
import { openForReading } from '../store.ts'
import { runToEnd } from './run.ts'

interface ForkOptions {
  readonly at: string
  readonly n: number
  readonly onDivergence: string
  readonly way: string
  readonly name?: string
  readonly engine?: string
  readonly inject?: string
}

/** `paddock fork`: further rollouts that go on from a recorded one, at a call of its agent. */
export function addFork(program: Command, cli: Cli): void {
  program
    .command('fork')
    .description(
      'run rollouts that go on from a recorded one: its past stands as it was, and the model is asked from one call on',
    )
    .argument('<rollout>', 'id of a rollout that `paddock run` or a trainer had done')
    .requiredOption(
      '--at <call>',
      'the call to go another way at: its id, the end of it, or its number in the conversation',
    )
    .option('--n <count>', 'rollouts that go on from there: a group of its own', wholeNumber(1), 4)
    .option('--way <way>', 'replay, state or graft: how they come to where the parent stood', 'replay')
    .option(
      '--on-divergence <what>',
      'of a harness that asks something else on the way: refuse, or branch there',
      'refuse',
    )
    .option('--inject <file>', injectHelp)
    .option('--name <text>', 'name of the run')
    .option('--engine <url>', 'inference backend (default: ENGINE_URL, else the scripted engine)')
    .addHelpText(
      'after',
      `
Example:
  $ paddock show 5f3a9c21              lists the calls
  $ paddock fork 5f3a9c21 --at 3 --n 4

By replay each of them has a fresh box and the harness started anew. Up to the call the harness is answered as it was then, and its tools
really run again; every request is compared with the recorded one. By state and graft its box is a copy of the parent's at that call
(run.snapshotEvery, run.keepSnapshots), and nothing runs again. What was replayed is never trained again.`,
    )
    .action(async (rollout: string, options: ForkOptions, command: Command) =>
      cli.run(command, overridesOf(options), async (context) =>
        runToEnd(context, await requestOf(context, rollout, options), options),
      ),
    )
}

async function requestOf(context: CommandContext, text: string, options: ForkOptions): Promise<RunRequest> {
  const { requestOfRun } = await import('../execute.ts')
  const { callNamed } = await import('../../rollout/index.ts')
  const { at, n, onDivergence, way } = options
  if (way !== 'replay' && way !== 'state' && way !== 'graft') {
    throw new PaddockError('USAGE', `--way ${way}: there is no such way`, { fix: 'Write replay, state or graft.' })
  }
  if (onDivergence !== 'refuse' && onDivergence !== 'branch') {
    throw new PaddockError('USAGE', `--on-divergence ${onDivergence}: there is no such choice`, {
      fix: 'Write refuse or branch.',
    })
  }
  await using reader = await openForReading(context)
  const rollout = await reader.catalogue.rollout(await resolveKind(reader, 'rollout', text))
  const call = await callNamed(reader.recorder, rollout.id, at)
  const name = options.name ?? `fork of ${shortId(rollout.id)} at ${shortId(call)}`
  const asked = requestOfRun(await reader.catalogue.run(rollout.runId))
  const inject = options.inject === undefined ? undefined : await readInjections(context.io.cwd, options.inject)
  const group = inject === undefined ? {} : { inject }
  return { ...asked, only: [], without: [], group, n, name, fork: { rollout: rollout.id, call, way, onDivergence } }
}

function overridesOf({ engine }: ForkOptions): ConfigInput {
  return engine === undefined ? {} : { engine: { url: engine } }
}
