import type { Command } from 'commander'
import { type ConfigInput, engineUrls } from '../../config/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { environmentFinder } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { aborted } from '../io.ts'
import { selectorFor } from '../selectors.ts'
import { type ListenerOptions, listenerOverrides, withListenerOptions } from '../tls.ts'

interface CoordinatorOptions extends ListenerOptions {
  readonly engine?: string
  readonly model?: string
  readonly here?: boolean
}

/** `paddock coordinator`: owns the data directory and leaves the rollouts of its runs to nodes. */
export function addCoordinator(program: Command, cli: Cli): void {
  const command = program
    .command('coordinator')
    .description(
      'own the data directory and leave the rollouts of its runs to nodes that join; serves /rl/v1 until Ctrl-C',
    )
    .option(
      '--engine <url>',
      'inference backend as the nodes reach it; several replicas: separated by commas; `none`: a trainer names it later (default: ENGINE_URL, else the scripted engine)',
    )
    .option('--model <name>', 'model to use (default: MODEL, else the only one that the engine lists)')
    .option('--here', 'do rollouts on this machine too')
  withListenerOptions(command)
    .addHelpText(
      'after',
      `
Example:
  $ paddock coordinator --engine http://10.0.0.7:8000
  $ paddock token create --role node --name gpu-1 > node-token
  $ paddock node --join http://127.0.0.1:8791 --token-file node-token       on each machine that does rollouts
  $ paddock run examples/tasks/terminal --n 8                               handed to the coordinator, done by nodes`,
    )
    .action(async (options: CoordinatorOptions, command: Command) =>
      cli.run(command, overridesOf(options), (context) => coordinate(context, options)),
    )
}

async function coordinate(context: CommandContext, options: CoordinatorOptions): Promise<ExitCode> {
  const { io, loaded, paint } = context
  const { config } = loaded
  const { openOwner } = await import('../owner.ts')
  const { submitRun } = await import('../submit.ts')
  const { findTrainerRun } = await import('../execute.ts')
  const owner = await openOwner({
    config: { ...config, proxy: { ...config.proxy, port: 0 } },
    openMode: false,
    doesRollouts: options.here ?? false,
    signal: io.signal,
    submit: (inner, asked) => submitRun(inner, loaded, asked, io.signal),
    findRun: (inner, asked) => findTrainerRun(loaded, inner, asked, io.signal),
    findSelector: (name, part) => selectorFor(loaded, name, part),
    findEnvironment: environmentFinder(loaded),
  })
  try {
    const { found } = owner.engines
    const { origin } = owner.control
    if (context.json) {
      const { directory: data } = owner.store
      io.out(
        JSON.stringify({ type: 'ready', control: origin, engine: found?.description ?? null, data, pid: process.pid }),
      )
    } else {
      io.out(
        [
          `${paint('strong', 'Paddock')} leaves rollouts to nodes and records them in ${config.store.directory}`,
          `engine    ${found?.description ?? 'none yet: a trainer names it, PUT /rl/v1/runs/{run}/engines'}`,
          `control   ${origin}`,
          '',
          context.typed(
            'On each machine that does rollouts, with a token of `paddock token create --role node --name <name>`:',
          ),
          `  ${context.called} node --join ${origin} --token-file <file>`,
          '',
          paint('dim', 'Ctrl-C ends.'),
        ].join('\n'),
      )
    }
    await Promise.race([aborted(io.signal), owner.rewound])
    context.notice('\nStopping: runs under way can be gone on with (`paddock run --resume`) …')
  } finally {
    await owner.close()
  }
  return exitCode.ok
}

function overridesOf({ engine, model, ...listener }: CoordinatorOptions): ConfigInput {
  return {
    engine: { ...engineUrls(engine), ...(model === undefined ? {} : { model }) },
    ...listenerOverrides(listener),
  }
}
