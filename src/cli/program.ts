import { Command, CommanderError, Help } from 'commander'
import type { Config } from '../config/index.ts'
import { isPaddockError, type PaddockError, present } from '../core/index.ts'
import { asTyped } from './called.ts'
import { failureOfGiven, givenValues } from './present/given.ts'
import { type Cli, type GlobalOptions, openContext, openReading } from './cli.ts'
import { type ExitCode, exitCode, exitCodeOf } from './exit.ts'
import type { Io } from './io.ts'
import { asPaddockError, failureText } from './present/failure.ts'
import { globalsWithValue, usageError } from './present/usage.ts'
import { version } from './version.ts'

/** Commands that only look: they run no code of the user's, so they can be used on what somebody else sent. */
const readers: ReadonlySet<string> = new Set(['list', 'show', 'search', 'fsck', 'salvage', 'view'])

/** Codes that refuse a configuration. */
const configRefused: ReadonlySet<string> = new Set(['CONFIG_INVALID', 'CONFIG_NOT_FOUND', 'CONFIG_UNTRUSTED'])

/** In the order of the help. A command's code is loaded when it is asked for: starting is most of what a short one costs. */
const commands: Readonly<Record<string, () => Promise<(program: Command, cli: Cli) => void>>> = {
  quickstart: async () => (await import('./commands/quickstart.ts')).addQuickstart,
  serve: async () => (await import('./commands/serve.ts')).addServe,
  coordinator: async () => (await import('./commands/coordinator.ts')).addCoordinator,
  node: async () => (await import('./commands/node.ts')).addNode,
  run: async () => (await import('./commands/run.ts')).addRun,
  fork: async () => (await import('./commands/fork.ts')).addFork,
  fetch: async () => (await import('./commands/fetch.ts')).addFetch,
  generate: async () => (await import('./commands/generate.ts')).addGenerate,
  validate: async () => (await import('./commands/validate.ts')).addValidate,
  rescore: async () => (await import('./commands/rescore.ts')).addRescore,
  rewrite: async () => (await import('./commands/rewrite.ts')).addRewrite,
  verdict: async () => (await import('./commands/verdict.ts')).addVerdict,
  view: async () => (await import('./commands/view.ts')).addView,
  token: async () => (await import('./commands/token.ts')).addToken,
  env: async () => (await import('./commands/env.ts')).addEnv,
  retrieve: async () => (await import('./commands/retrieve.ts')).addRetrieve,
  openenv: async () => (await import('./commands/openenv.ts')).addOpenEnv,
  desktop: async () => (await import('./commands/desktop.ts')).addDesktop,
  list: async () => (await import('./commands/list.ts')).addList,
  show: async () => (await import('./commands/show.ts')).addShow,
  search: async () => (await import('./commands/search.ts')).addSearch,
  drift: async () => (await import('./commands/drift.ts')).addDrift,
  conform: async () => (await import('./commands/conform.ts')).addConform,
  export: async () => (await import('./commands/export.ts')).addExport,
  import: async () => (await import('./commands/import.ts')).addImport,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctor,
  engine: async () => (await import('./commands/engine.ts')).addEngine,
  gc: async () => (await import('./commands/gc.ts')).addGc,
  box: async () => (await import('./commands/box.ts')).addBox,
  bench: async () => (await import('./commands/bench.ts')).addBench,
  backup: async () => (await import('./commands/backup.ts')).addBackup,
  restore: async () => (await import('./commands/restore.ts')).addRestore,
  fsck: async () => (await import('./commands/fsck.ts')).addFsck,
  salvage: async () => (await import('./commands/salvage.ts')).addSalvage,
  completion: async () => (await import('./commands/completion.ts')).addCompletion,
}

/** The command that arguments name; all of them for a help text, a word like a command's, and a script of them all. */
function askedIn(args: readonly string[]): readonly string[] {
  const word = args.find((arg, at) => !arg.startsWith('-') && !globalsWithValue.has(args[at - 1] ?? ''))
  if (word === undefined && (args.includes('--version') || args.includes('-V'))) return []
  return word === undefined || word === 'completion' || !(word in commands) ? Object.keys(commands) : [word]
}

/** The command tree, or those of its commands that are asked for; `docs/reference/cli.md` is held against it by a test. */
export async function buildProgram(cli: Cli, asked: readonly string[] = Object.keys(commands)): Promise<Command> {
  const program = new Command('paddock')
    .description(
      'An RL gym and a flight recorder for black-box agents: records every model call token for token,\n' +
        'runs harnesses in boxes, scores what they did, exports it to trainers.',
    )
    .version(version)
    .option(
      '--config <file>',
      'configuration file (default: paddock.config.ts here, if it is yours and nobody else can write it)',
    )
    .option('--no-config', 'read no configuration file')
    .option('--data <dir>', 'data directory (default: .paddock)')
    .option(
      '--catalogue <url>',
      'PostgreSQL database for catalogue and queue; none: they are in the data directory (default)',
    )
    .option('--json', 'print JSON instead of text')
    .option('--verbose', 'print stacks with errors')
    .option('--no-color', 'no colour')
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions(command) {
        const all = Help.prototype.visibleGlobalOptions.call(this, command)
        const isRead = command.parent?.parent !== null || !readers.has(command.name())
        return all.filter(({ long }) => isRead || (long !== '--config' && long !== '--no-config'))
      },
    })
    .addHelpText(
      'after',
      `
First steps:
  $ paddock doctor                                    what is missing on this machine
  $ paddock quickstart                                something to look at, without Docker
  $ paddock serve                                     record a harness of your own
  $ paddock run examples/tasks/terminal --n 4         rollouts of tasks in boxes
  $ paddock list                                      what is recorded
  $ paddock show <id>                                 one conversation, with its tokens
  $ paddock export --format jsonl --out out/          rows for a trainer

Exit codes: 0 ok, 1 found problems, 2 usage, 3 infrastructure, 4 engine, 130 cancelled.`,
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.io.out(asTyped(text.trimEnd(), cli.io.called ?? 'paddock')),
      // Errors are thrown and told once, in the form of all errors.
      writeErr: () => undefined,
    })
  for (const load of Object.entries(commands).flatMap(([name, one]) => (asked.includes(name) ? [one] : []))) {
    const add = await load()
    add(program, cli)
  }
  return program
}

/** Parses, runs, tells failures as one line, and resolves to the exit code. Never rejects. */
export async function runCli(args: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = exitCode.ok
  let config: Config | null = null
  let program: Command | null = null
  const cli: Cli = {
    io,
    run: async (command, overrides, body) => {
      const options = command.optsWithGlobals<GlobalOptions>()
      const opening =
        command.parent?.parent === null && readers.has(command.name())
          ? openReading(io, options, command.name(), overrides)
          : openContext(io, options, overrides)
      const context = await opening
      config = context.loaded.config
      code = await body(context)
    },
    look: async (command, body) => {
      const options = command.optsWithGlobals<GlobalOptions>()
      let refused: PaddockError | null = null
      const context = await openContext(io, options, {}).catch((error: unknown) => {
        if (!isPaddockError(error) || !configRefused.has(error.code)) throw error
        refused = error
        const { json, verbose, color } = options
        return openContext({ ...io, env: {} }, present({ config: false as const, json, verbose, color }), {})
      })
      config = context.loaded.config
      code = await body(context, refused)
    },
  }
  try {
    program = await buildProgram(cli, askedIn(args))
    if (args.length === 0) program.outputHelp()
    else await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCode.ok
    if (io.signal.aborted && !isPaddockError(error)) {
      io.err('Cancelled.')
      return exitCode.cancelled
    }
    const failure = withFix(error, program, givenValues(args, io.env, config), { args, cwd: io.cwd })
    const known = asPaddockError(failure)
    const typed = (text: string): string => asTyped(text, io.called ?? 'paddock')
    if (args.includes('--json')) io.err(JSON.stringify({ error: { ...known.toJSON(), fix: typed(known.fix) } }))
    else io.err(typed(failureText(failure, args.includes('--verbose'))))
    return exitCodeOf(failure)
  }
}

/** A failure of the command line, of a path or of an address as the user's error; all others as they are. */
function withFix(
  error: unknown,
  program: Command | null,
  given: ReturnType<typeof givenValues>,
  { args, cwd }: { readonly args: readonly string[]; readonly cwd: string },
): unknown {
  if (error instanceof CommanderError && program !== null) return usageError(error, program, args)
  return failureOfGiven(error, given, cwd) ?? error
}
