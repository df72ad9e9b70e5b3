import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { ConfigInput } from '../../config/index.ts'
import { isPaddockError, newId, PaddockError, present } from '../../core/index.ts'
import type { RunSummary } from '../../rollout/index.ts'
import type { ResumeRequest, RunRequest } from '../../server/index.ts'
import type { OwnerAddress } from '../../access/index.ts'
import { type Cli, type CommandContext, labels, repeated, share, wholeNumber } from '../cli.ts'
import { environmentFinder, pluginPath } from '../environments.ts'
import type { PreparedRun } from '../execute.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { ownerOf } from '../find-owner.ts'
import { injectHelp, readInjections } from '../injections.ts'
import type { Owner, OwnerOptions } from '../owner.ts'
import { type PublicNetwork, publicNetworkOf, publicNetworkOption } from '../public-network.ts'
import { RunProgressView, runText } from '../present/run.ts'
import { readQuarantine } from '../validation-results.ts'
import { resolveKind } from '../resolve.ts'
import { selectorFor } from '../selectors.ts'
import { openForReading } from '../store.ts'
import { taskPlace } from '../task-place.ts'

interface RunOptions {
  readonly trustTasks?: boolean
  readonly publicNetwork?: PublicNetwork
  readonly env: string
  readonly harness: string
  readonly command?: string
  readonly task?: readonly string[]
  readonly n?: number
  readonly step?: number
  readonly quarantine?: string
  readonly name?: string
  readonly needs?: readonly string[]
  readonly label?: Readonly<Record<string, string>>
  readonly over?: number
  readonly minUsable?: number
  readonly stopAt?: number
  readonly topUp?: number
  readonly deadlineMs?: number
  readonly horizon?: number
  readonly maxNullShare?: number
  readonly inject?: string
  readonly engine?: string
  readonly model?: string
  readonly resume?: string
  readonly chain?: string
  readonly select?: string
  readonly selectOption?: Readonly<Record<string, string>>
  readonly selectCount?: number
  readonly selectSeed?: number
}

/** `paddock run`: groups of rollouts of tasks, verified, with a table at the end. */
export function addRun(program: Command, cli: Cli): void {
  program
    .command('run')
    .description('run a harness on tasks in boxes, verify what it did, and print a table')
    .argument('[tasks]', 'directory of a task, or of tasks, or generated ones such as records:0..9:1')
    .option('--env <name>', 'environment of the tasks: a name, or the path of a plugin', 'terminal')
    .option(
      '--harness <name>',
      'reference, claude-code, cline, codex, gemini-cli, gui-text, opencode, pi, qwen-code, shell, script, or one of the configuration',
      'reference',
    )
    .option('--command <line>', 'what the shell and script harnesses run')
    .option(
      '--chain <file>',
      'work on the links of this chain one after the other; a folder of files goes from box to box (chain.json)',
    )
    .option('--task <name>', 'only this task; may be repeated', repeated)
    .option(
      '--select <name>',
      'leave the choice of tasks to a selector, by what is remembered of this harness: pass-rate, thompson, least-used, frontier, or one of the configuration',
    )
    .option('--select-count <count>', 'tasks that the selector chooses at most (default: 1)', wholeNumber(1))
    .option('--select-option <name=value>', 'number that the selector takes; may be repeated', labels)
    .option('--select-seed <n>', 'the same seed and memory: the same tasks (default: 0)', wholeNumber(0))
    .option('--n <count>', 'rollouts per task: the size of a group', wholeNumber(1))
    .option(
      '--over <count>',
      'rollouts started beyond --n; the last are stopped when enough are usable',
      wholeNumber(0),
    )
    .option(
      '--stop-at <count>',
      'usable members at which the others of a group are stopped (default: --n with --over)',
      wholeNumber(1),
    )
    .option('--min-usable <count>', 'below so many usable members a group settles as failed', wholeNumber(0))
    .option('--top-up <count>', 'further rollouts that a group may start where members are not usable', wholeNumber(0))
    .option('--deadline-ms <ms>', 'time of a group, after which whoever is not done is left out', wholeNumber(1))
    .option('--horizon <calls>', 'calls after which an agent is cut on purpose, which is no failure', wholeNumber(1))
    .option(
      '--max-null-share <share>',
      'stop the run when more than this part of its ended rollouts has no number, from 0 to 1 (after 20 rollouts, or all of fewer)',
      share,
    )
    .option('--inject <file>', injectHelp)
    .option('--trust-tasks', 'let programs that the tasks bring for this machine run, as you (cua-bench, sidecars)')
    .addOption(publicNetworkOption())
    .option('--quarantine <file>', 'leave out the tasks that `paddock validate --quarantine` wrote there')
    .option('--step <n>', 'step of the training, for what changes over one (the noise of search tasks)', wholeNumber(0))
    .option('--needs <label>', 'leave its rollouts to nodes that have this label; may be repeated', repeated)
    .option('--name <text>', 'name of the run')
    .option('--label <name=value>', 'label of each rollout; may be repeated', labels)
    .option(
      '--engine <url>',
      'inference backend, with or without /v1; several replicas: separated by commas (default: ENGINE_URL, else the scripted engine)',
    )
    .option('--model <name>', 'model to use (default: MODEL, else the only one that the engine lists)')
    .option(
      '--resume <run>',
      'go on with this run as it was begun: finished rollouts stay, unverified ones are verified, missing ones run',
    )
    .addHelpText(
      'after',
      `
Example:
  $ paddock run examples/tasks/terminal --harness reference --n 4
  $ paddock run tasks --select thompson --select-count 8 --select-option target=0.3
  $ paddock run --resume 5f3a9c21

Exit code 0 when the run ended, whatever the rewards; 3 when a rollout ended as infra in its last attempt or could not be
verified; 130 after Ctrl-C. When another process owns the data directory (\`paddock serve\`, another run), the run is handed to it.`,
    )
    .action(async (tasks: string | undefined, options: RunOptions, command: Command) =>
      cli.run(command, overridesOf(options), async (context) =>
        runToEnd(context, await askedFor(context, tasks, options, command), options),
      ),
    )
}

/** What is asked of whoever owns the data directory. */
type Asked = RunRequest | ResumeRequest

/** Runs what was asked for to its end, here or at the owner of the data directory, and prints the table. */
export async function runToEnd(
  context: CommandContext,
  asked: Asked,
  options: { readonly engine?: string },
): Promise<ExitCode> {
  const summary = await summaryOf(context, asked, options)
  context.result({ summary }, () => context.typed(runText(summary, context.paint, context.io.columns)))
  return codeOf(summary)
}

/** At the owner of the data directory, else here. Owners come and go meanwhile. */
async function summaryOf(
  context: CommandContext,
  asked: Asked,
  options: { readonly engine?: string },
): Promise<RunSummary> {
  const { ownerGone } = await import('../../access/index.ts')
  const { io, loaded } = context
  const { directory } = loaded.config.store
  for (;;) {
    const owner = await ownerOf(context)
    if (owner === null) {
      const summary = await runHere(context, asked)
      if (summary !== null) return summary
      continue
    }
    if (options.engine !== undefined) {
      throw new PaddockError(
        'USAGE',
        `--engine is for a run of its own, and pid ${owner.pid} owns the data directory`,
        {
          fix: 'Leave --engine out to run on the engine of that process, or choose another --data directory.',
        },
      )
    }
    try {
      return await runAtOwner(context, asked, owner)
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'OWNER_STOPPING') throw error
      context.notice(`Process ${owner.pid} is stopping: waiting for its end …`)
      await ownerGone(directory, owner.pid, io.signal)
    }
  }
}

/** Null where another process has come to own the data directory meanwhile. */
async function runHere(context: CommandContext, asked: Asked): Promise<RunSummary | null> {
  const { io, loaded } = context
  const { findTrainerRun, isFork, prepareFork, prepareResume, prepareRun } = await import('../execute.ts')
  const { claimRun, submitRun } = await import('../submit.ts')
  // What is wrong with the request is told before anything is started.
  const begun = 'resume' in asked || isFork(asked) ? null : await prepareRun(loaded, asked, io.signal)
  const owner = await openUnlessOwned(context, {
    submit: (inner, submitted) => submitRun(inner, loaded, submitted, io.signal),
    findRun: (inner, found) => findTrainerRun(loaded, inner, found, io.signal),
    findSelector: (name, part) => selectorFor(loaded, name, part),
    findEnvironment: environmentFinder(loaded),
  })
  if (owner === null) return null
  const progress = new RunProgressView(io, context.paint)
  const runId = 'resume' in asked ? asked.resume : newId()
  const release = claimRun(owner, runId)
  try {
    const { catalogue } = owner.store
    const recorded = (): Promise<PreparedRun> =>
      'resume' in asked || !isFork(asked)
        ? prepareResume(loaded, catalogue, 'resume' in asked ? asked : { resume: runId })
        : prepareFork(loaded, catalogue, asked)
    const prepared = begun ?? (await recorded())
    context.notice(`engine    ${owner.engine.description}`)
    const summary = await prepared.start({
      owner,
      runId,
      signal: io.signal,
      onProgress: (one) => {
        owner.progress(runId, one)
        if (!context.json) progress.show(one)
      },
    })
    progress.end()
    if (owner.submitted.size > 0) context.notice('Waiting for the runs that other processes handed in …')
    await owner.settle()
    return summary
  } finally {
    release()
    progress.end()
    await owner.close()
  }
}

async function openUnlessOwned(
  { io, loaded }: CommandContext,
  takes: Pick<OwnerOptions, 'submit' | 'findRun' | 'findSelector' | 'findEnvironment'>,
): Promise<Owner | null> {
  const { openOwner } = await import('../owner.ts')
  // A run of its own takes free ports: nobody has to know them.
  const config = {
    ...loaded.config,
    proxy: { ...loaded.config.proxy, port: 0 },
    control: { ...loaded.config.control, port: 0 },
  }
  try {
    return await openOwner({ config, openMode: false, signal: io.signal, ...takes })
  } catch (error) {
    if (isPaddockError(error) && error.code === 'STORE_LOCKED') return null
    throw error
  }
}

async function runAtOwner(context: CommandContext, asked: Asked, owner: OwnerAddress): Promise<RunSummary> {
  const { followAtOwner, ownerError } = await import('../at-owner.ts')
  context.notice(`The data directory belongs to pid ${owner.pid}: the run is handed to it.`)
  const progress = new RunProgressView(context.io, context.paint)
  try {
    for await (const told of followAtOwner(owner, asked, context.io.signal)) {
      if (told.kind === 'progress') {
        if (!context.json) progress.show(told.progress)
        continue
      }
      if ('summary' in told.data) return told.data['summary'] as RunSummary // Written by the owner, which is this program.
      throw ownerError(told.data, owner, 'could not run it')
    }
  } finally {
    progress.end()
  }
  throw new PaddockError('INTERNAL', 'the owner said nothing of the run')
}

function codeOf(summary: RunSummary): ExitCode {
  if (summary.cancelled) return exitCode.cancelled
  const broken = summary.rollouts.some(({ end, retried, unverified }) => (end === 'infra' && !retried) || unverified)
  return broken ? exitCode.infra : exitCode.ok
}

async function askedFor(
  context: CommandContext,
  tasks: string | undefined,
  options: RunOptions,
  command: Command,
): Promise<Asked> {
  const { resume, chain: file } = options
  if ([tasks, resume, file].filter((one) => one !== undefined).length !== 1) {
    throw new PaddockError('USAGE', 'run needs tasks, --chain or --resume', {
      fix: 'Write `paddock run <folder of tasks>`, `paddock run --chain <file>` or `paddock run --resume <run>`.',
    })
  }
  if (file !== undefined) return chainOf(context, file, options, command)
  if (tasks !== undefined || resume === undefined) return requestOf(context, tasks ?? '', options)
  const given = [
    'env',
    'harness',
    'command',
    'task',
    'n',
    'select',
    'selectCount',
    'selectOption',
    'selectSeed',
    'quarantine',
    'step',
    'name',
    'needs',
    'label',
    'model',
    'trustTasks',
    'publicNetwork',
    ...groupOptions,
  ]
  const set = given.filter((name) => command.getOptionValueSource(name) === 'cli')
  const refused = set.map((name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
  if (refused.length > 0) {
    throw new PaddockError(
      'USAGE',
      `--resume continues a run with its original settings: --${refused.join(', --')} cannot change them`,
      { fix: `Leave out --${refused.join(', --')}, or start a new run.` },
    )
  }
  await using reader = await openForReading(context)
  return { resume: await resolveKind(reader, 'run', resume), ...present({ maxNullShare: options.maxNullShare }) }
}

/** What a chain says of its rollouts is not said on the command line too. */
async function chainOf(
  context: CommandContext,
  file: string,
  options: RunOptions,
  command: Command,
): Promise<RunRequest> {
  const { readChain } = await import('../chain-file.ts')
  const refused = ['task', 'select', 'over', 'topUp', 'needs'].filter(
    (name) => command.getOptionValueSource(name) === 'cli',
  )
  if (refused.length > 0) {
    const names = refused.map((name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`)
    throw new PaddockError('USAGE', `a chain has its own links and members: ${names.join(', ')} cannot change them`, {
      fix: `Leave out ${names.join(', ')}, or change the file of the chain.`,
    })
  }
  const { tasks, environment, horizon, ...chain } = await readChain(taskPlace(context.io.cwd, file))
  const asked = await requestOf(
    context,
    tasks,
    command.getOptionValueSource('env') === 'cli' ? options : { ...options, env: environment },
  )
  const group = horizon === null || options.horizon !== undefined ? asked.group : { ...asked.group, horizon }
  return { ...asked, group, chain, name: asked.name ?? chain.name }
}

const groupOptions = ['over', 'minUsable', 'stopAt', 'topUp', 'deadlineMs', 'horizon']

/** Whole, so that the run is the same here and at an owner with another configuration. */
async function requestOf({ io, loaded }: CommandContext, tasks: string, options: RunOptions): Promise<RunRequest> {
  const { session, engine, run: configured } = loaded.config
  return {
    tasks: taskPlace(io.cwd, tasks),
    environment: pluginPath(options.env, io.cwd) ?? options.env,
    harness: options.harness,
    command: options.command ?? null,
    only: [...(options.task ?? [])],
    without: options.quarantine === undefined ? [] : [...(await readQuarantine(resolve(io.cwd, options.quarantine)))],
    n: options.n ?? configured.n,
    step: options.step ?? null,
    maxNullShare: options.maxNullShare ?? null,
    trustTasks: options.trustTasks ?? false,
    publicNetwork: loaded.config.tasks.publicNetwork,
    name: options.name ?? null,
    needs: [...(options.needs ?? [])],
    labels: options.label ?? {},
    model: engine.model,
    policy: session,
    budgets: configured.budgets,
    group:
      options.inject === undefined
        ? configured.group
        : { ...configured.group, inject: await readInjections(io.cwd, options.inject) },
    select: selectOf(options),
    chain: null,
    fork: null,
  }
}

function selectOf({ select, selectCount, selectOption, selectSeed }: RunOptions): RunRequest['select'] {
  if (select === undefined) {
    if (selectCount === undefined && selectOption === undefined && selectSeed === undefined) return null
    throw new PaddockError('USAGE', '--select-count, --select-option and --select-seed go with --select', {
      fix: 'Add `--select <name>`, or leave them out.',
    })
  }
  const options = Object.entries(selectOption ?? {}).map(([name, text]) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value)) return [name, value] as const
    throw new PaddockError('USAGE', `--select-option ${name}: ${text} is not a number`, {
      fix: `Write \`--select-option ${name}=<number>\`.`,
    })
  })
  return { name: select, options: Object.fromEntries(options), count: selectCount ?? 1, seed: selectSeed ?? 0 }
}

function overridesOf(options: RunOptions): ConfigInput {
  const { over, minUsable, stopAt, topUp, deadlineMs, horizon } = options
  const group = Object.entries({ over, minUsable, stopAt, topUp, deadlineMs, horizon })
  return {
    run: { group: Object.fromEntries(group.filter(([, value]) => value !== undefined)) },
    ...publicNetworkOf(options),
    engine: {
      ...(options.engine === undefined ? {} : { url: options.engine }),
      ...(options.model === undefined ? {} : { model: options.model }),
    },
  }
}
