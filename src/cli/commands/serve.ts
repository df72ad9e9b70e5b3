import type { Command } from 'commander'
import { type Cli, type CommandContext, labels, wholeNumber } from '../cli.ts'
import { type ConfigInput, engineUrls } from '../../config/index.ts'
import { environmentFinder } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { aborted } from '../io.ts'
import type { Owner } from '../owner.ts'
import type { Recording } from '../../rollout/index.ts'
import { callLine } from '../present/calls.ts'
import { plural } from '../present/units.ts'
import { selectorFor } from '../selectors.ts'
import { type ListenerOptions, listenerOverrides, withListenerOptions } from '../tls.ts'

interface ServeOptions extends ListenerOptions {
  readonly engine?: string
  readonly model?: string
  readonly host?: string
  readonly port?: number
  readonly label?: Readonly<Record<string, string>>
  readonly open?: boolean
}

/** `paddock serve`: records a harness of the user's own until Ctrl-C. */
export function addServe(program: Command, cli: Cli): void {
  const command = program
    .command('serve')
    .description('record a harness of your own: prints a base URL and a key, then a line per recorded call')
    .option(
      '--engine <url>',
      'inference backend, with or without /v1; several replicas: separated by commas; `none`: a trainer names it later (default: ENGINE_URL, else the scripted engine)',
    )
    .option('--model <name>', 'model to use (default: MODEL, else the only one that the engine lists)')
    .option('--host <address>', 'address of the inference listener')
    .option('--port <n>', 'port of the inference listener, 0 takes a free one', wholeNumber(0, 65_535))
    .option('--label <name=value>', 'label of the session; may be repeated', labels)
    .option('--open', 'loopback only: also record clients that have no key, a session per client')
  withListenerOptions(command)
    .addHelpText(
      'after',
      `
Example:
  $ paddock serve --engine http://127.0.0.1:8000
  then, in another shell, set the printed OPENAI_BASE_URL and OPENAI_API_KEY and start your harness.`,
    )
    .action(async (options: ServeOptions, command: Command) =>
      cli.run(command, overridesOf(options), (context) => serve(context, options)),
    )
}

async function serve(context: CommandContext, options: ServeOptions): Promise<ExitCode> {
  const { io, paint } = context
  const { openOwner } = await import('../owner.ts')
  const { submitRun } = await import('../submit.ts')
  const { findTrainerRun } = await import('../execute.ts')
  const { sessionPolicy } = await import('../../server/index.ts')
  const { endRecordings, openRecording } = await import('../../rollout/index.ts')
  const { config } = context.loaded
  let calls = 0
  let end = async (): Promise<void> => undefined
  const owner = await openOwner({
    config,
    openMode: options.open ?? false,
    signal: io.signal,
    submit: (inner, asked) => submitRun(inner, context.loaded, asked, io.signal),
    findRun: (inner, asked) => findTrainerRun(context.loaded, inner, asked, io.signal),
    findSelector: (name, part) => selectorFor(context.loaded, name, part),
    findEnvironment: environmentFinder(context.loaded),
    onCall: (call) => {
      calls += 1
      io.out(context.json ? JSON.stringify({ type: 'call', ...call }) : callLine(call, Date.now(), paint))
    },
  })
  try {
    const { found } = owner.engines
    const opened =
      found === null
        ? null
        : await openRecording({
            store: owner.store,
            proxy: owner.proxy,
            name: 'serve',
            session: {
              policy: sessionPolicy(config.session, found.model),
              labels: { command: 'serve', ...options.label },
            },
          })
    end = async () => {
      await opened?.end()
      await endRecordings(owner.store, owner.proxy)
      await owner.proxy.closeOpenMode()
    }
    const exports =
      opened === null || found === null
        ? null
        : {
            OPENAI_BASE_URL: opened.baseUrl(owner.listener.origin),
            OPENAI_API_KEY: opened.key,
            OPENAI_MODEL: found.model,
          }
    if (context.json) io.out(JSON.stringify(readyJson(owner, opened, exports)))
    else io.out(readyText(context, owner, exports, options.open ?? false))
    await Promise.race([aborted(io.signal), owner.rewound])
    context.notice('\nStopping: running calls are recorded to their end (Ctrl-C again leaves at once) …')
  } finally {
    try {
      await owner.proxy.drain()
      await end()
    } finally {
      // A store that cannot write any more must not keep the process from ending.
      await owner.close()
    }
  }
  context.notice(`${plural(calls, 'call')} recorded in ${config.store.directory}. \`paddock list\` shows them.`)
  return exitCode.ok
}

function readyText(
  { paint, loaded, typed }: CommandContext,
  owner: Owner,
  exports: Readonly<Record<string, string>> | null,
  open: boolean,
): string {
  const { recovered } = owner.store
  const { found } = owner.engines
  return [
    `${paint('strong', 'Paddock')} records every model call to ${loaded.config.store.directory}`,
    `engine    ${found?.description ?? 'none yet: a trainer names it, PUT /rl/v1/runs/{run}/engines'}`,
    `control   ${owner.control.origin}  (its token is in ${loaded.config.store.directory}/control-token)`,
    ...(found?.report.missing ?? []).map((flag) => paint('warn', `missing   ${flag.what}. Fix: ${flag.fix}`)),
    ...(recovered.damaged === 0
      ? []
      : [
          paint(
            'bad',
            typed(`${plural(recovered.damaged, 'place')} of the store damaged; \`paddock fsck\` names them`),
          ),
        ]),
    ...(recovered.interruptedCalls === 0
      ? []
      : [paint('warn', `recovered ${plural(recovered.interruptedCalls, 'call')} that an earlier end interrupted`)]),
    '',
    ...(exports === null
      ? ['Your trainer needs:']
      : ['Point your harness here:', ...Object.entries(exports).map(([name, value]) => `  export ${name}=${value}`)]),
    `  export PADDOCK_CONTROL_URL=${owner.control.origin}`,
    // The scripted engine does nothing of its own: this is where it is told what.
    ...(!found?.scripted ? [] : [`  export ENGINE_CONTROL=${found.scripted.control}`]),
    ...(open ? [`or, without a key: export OPENAI_BASE_URL=${owner.listener.origin}/v1`] : []),
    '',
    paint('dim', 'One line per recorded call follows; Ctrl-C ends.'),
  ].join('\n')
}

function readyJson(owner: Owner, opened: Recording | null, exports: Readonly<Record<string, string>> | null): unknown {
  const { found } = owner.engines
  return {
    type: 'ready',
    rolloutId: opened?.rolloutId ?? null,
    sessionId: opened?.session.id ?? null,
    env: exports,
    engine: found === null ? null : { ...found.report, model: found.model, scripted: found.scripted !== null },
    engineControl: found?.scripted?.control ?? null,
    inference: owner.listener.origin,
    control: owner.control.origin,
    data: owner.store.directory,
    pid: process.pid,
  }
}

function overridesOf(options: ServeOptions): ConfigInput {
  return {
    engine: {
      ...engineUrls(options.engine),
      ...(options.model === undefined ? {} : { model: options.model }),
    },
    proxy: {
      ...(options.host === undefined ? {} : { host: options.host }),
      ...(options.port === undefined ? {} : { port: options.port }),
    },
    ...listenerOverrides(options),
  }
}
