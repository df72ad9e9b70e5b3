import { resolve } from 'node:path'
import type { Command } from 'commander'
import { type ConfigInput, newId, PaddockError } from '../../core/index.ts'
import type { RunSummary } from '../../rollout/index.ts'
import type { OwnerAddress, RunRequest } from '../../server/index.ts'
import { type Cli, type CommandContext, repeated, wholeNumber } from '../cli.ts'
import { pluginPath } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { RunProgressView, runText } from '../present/run.ts'
import { readQuarantine } from '../quarantine.ts'

interface RunOptions {
  readonly trustTasks?: boolean
  readonly env: string
  readonly harness: string
  readonly command?: string
  readonly task?: readonly string[]
  readonly n?: number
  readonly step?: number
  readonly quarantine?: string
  readonly name?: string
  readonly engine?: string
  readonly model?: string
}

/** `paddock run`: groups of rollouts of tasks, verified, with a table at the end. */
export function addRun(program: Command, cli: Cli): void {
  program
    .command('run')
    .description('run a harness on tasks in boxes, verify what it did, and print a table')
    .argument('<tasks>', 'directory of a task, or of tasks')
    .option('--env <name>', 'environment of the tasks: a name, or the path of a plugin', 'terminal')
    .option(
      '--harness <name>',
      'reference, claude-code, cline, codex, gemini-cli, opencode, pi, qwen-code, shell, script, or one of the configuration',
      'reference',
    )
    .option('--command <line>', 'what the shell and script harnesses run')
    .option('--task <name>', 'only this task; may be repeated', repeated)
    .option('--n <count>', 'rollouts per task: the size of a group', wholeNumber(1))
    .option('--trust-tasks', 'let programs that the tasks bring for this machine run, as you (cua-bench, sidecars)')
    .option('--quarantine <file>', 'leave out the tasks that `paddock validate --quarantine` wrote there')
    .option('--step <n>', 'step of the training, for what changes over one (the noise of search tasks)', wholeNumber(0))
    .option('--name <text>', 'name of the run')
    .option(
      '--engine <url>',
      'inference backend, with or without /v1; several replicas: separated by commas (default: ENGINE_URL, else the scripted engine)',
    )
    .option('--model <name>', 'model to use (default: MODEL, else the only one that the engine lists)')
    .addHelpText(
      'after',
      `
Example:
  $ paddock run examples/tasks/terminal --harness reference --n 4

Exit code 0 when the run ended, whatever the rewards; 3 when a rollout ended as infra in its last attempt; 130 after Ctrl-C.
When another process owns the data directory (\`paddock serve\`), the run is handed to it.`,
    )
    .action(async (tasks: string, options: RunOptions, command: Command) =>
      cli.run(command, overridesOf(options), async (context) => run(context, await requestOf(context, tasks, options))),
    )
}

async function run(context: CommandContext, request: RunRequest): Promise<ExitCode> {
  const { findOwner } = await import('../../server/index.ts')
  const { directory } = context.loaded.config.store
  const owner = await findOwner(directory, context.loaded.config.control.token, context.io.signal)
  const summary = owner === null ? await runHere(context, request) : await runAtOwner(context, request, owner)
  context.result({ summary }, () => runText(summary, context.paint, context.io.columns))
  return codeOf(summary)
}

async function runHere(context: CommandContext, request: RunRequest): Promise<RunSummary> {
  const { io, loaded } = context
  const { prepareRun } = await import('../execute.ts')
  const { openOwner } = await import('../owner.ts')
  const prepared = await prepareRun(loaded, request, io.signal)
  const progress = new RunProgressView(io, context.paint)
  // A run of its own takes free ports: nobody has to know them.
  const config = {
    ...loaded.config,
    proxy: { ...loaded.config.proxy, port: 0 },
    control: { ...loaded.config.control, port: 0 },
  }
  const owner = await openOwner({ config, openMode: false, signal: io.signal })
  try {
    context.notice(`engine    ${owner.engine.description}`)
    return await prepared.start({
      owner,
      runId: newId(),
      signal: io.signal,
      onProgress: (one) => {
        owner.live.publish({ kind: 'progress', data: { progress: one } })
        if (!context.json) progress.show(one)
      },
    })
  } finally {
    progress.end()
    await owner.close()
  }
}

async function runAtOwner(context: CommandContext, request: RunRequest, owner: OwnerAddress): Promise<RunSummary> {
  const { followAtOwner, ownerError } = await import('../submit.ts')
  context.notice(`The data directory belongs to pid ${owner.pid}: the run is handed to it.`)
  const progress = new RunProgressView(context.io, context.paint)
  try {
    for await (const told of followAtOwner(owner, request, context.io.signal)) {
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
  return summary.rollouts.some((rollout) => rollout.end === 'infra' && !rollout.retried) ? exitCode.infra : exitCode.ok
}

async function requestOf(context: CommandContext, tasks: string, options: RunOptions): Promise<RunRequest> {
  return {
    tasks: resolve(context.io.cwd, tasks),
    environment: pluginPath(options.env, context.io.cwd) ?? options.env,
    harness: options.harness,
    command: options.command ?? null,
    only: options.task ?? [],
    without: options.quarantine === undefined ? [] : await readQuarantine(resolve(context.io.cwd, options.quarantine)),
    n: options.n ?? null,
    step: options.step ?? null,
    trustTasks: options.trustTasks ?? false,
    name: options.name ?? null,
  }
}

function overridesOf(options: RunOptions): ConfigInput {
  return {
    engine: {
      ...(options.engine === undefined ? {} : { url: options.engine }),
      ...(options.model === undefined ? {} : { model: options.model }),
    },
  }
}
