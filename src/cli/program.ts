import { Command, CommanderError } from 'commander'
import { isPaddockError, PaddockError } from '../core/index.ts'
import { type Cli, type GlobalOptions, openContext, openReading } from './cli.ts'
import { addBackup } from './commands/backup.ts'
import { addBench } from './commands/bench.ts'
import { addBox } from './commands/box.ts'
import { addCompletion } from './commands/completion.ts'
import { addConform } from './commands/conform.ts'
import { addDesktop } from './commands/desktop.ts'
import { addDoctor } from './commands/doctor.ts'
import { addDrift } from './commands/drift.ts'
import { addEngine } from './commands/engine.ts'
import { addEnv } from './commands/env.ts'
import { addExport } from './commands/export.ts'
import { addFork } from './commands/fork.ts'
import { addFsck } from './commands/fsck.ts'
import { addSalvage } from './commands/salvage.ts'
import { addGc } from './commands/gc.ts'
import { addImport } from './commands/import.ts'
import { addList } from './commands/list.ts'
import { addRescore } from './commands/rescore.ts'
import { addRetrieve } from './commands/retrieve.ts'
import { addRun } from './commands/run.ts'
import { addServe } from './commands/serve.ts'
import { addShow } from './commands/show.ts'
import { addToken } from './commands/token.ts'
import { addValidate } from './commands/validate.ts'
import { addVerdict } from './commands/verdict.ts'
import { addView } from './commands/view.ts'
import { type ExitCode, exitCode, exitCodeOf } from './exit.ts'
import type { Io } from './io.ts'
import { asPaddockError, failureText } from './present/failure.ts'
import { version } from './version.ts'

/** Commands that only look: they run no code of the user's, so they can be used on what somebody else sent. */
const readers: ReadonlySet<string> = new Set(['list', 'show', 'doctor', 'fsck', 'salvage', 'view'])

/** The command tree; `docs/reference/cli.md` is held against it by a test. */
export function buildProgram(cli: Cli): Command {
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
    .option('--catalogue <url>', 'PostgreSQL database for catalogue and queue (default: in the data directory)')
    .option('--json', 'print JSON instead of text')
    .option('--verbose', 'print stacks with errors')
    .option('--no-color', 'no colour')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      `
First steps:
  $ paddock doctor                                    what is missing on this machine
  $ paddock serve                                     record a harness of your own
  $ paddock run examples/tasks/terminal --n 4         rollouts of tasks in boxes
  $ paddock list                                      what is recorded
  $ paddock show <id>                                 one conversation, with its tokens
  $ paddock export --format jsonl --out out/          rows for a trainer

Exit codes: 0 ok, 1 found problems, 2 usage, 3 infrastructure, 4 engine, 130 cancelled.`,
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.io.out(text.trimEnd()),
      // Errors are thrown and told once, in the form of all errors.
      writeErr: () => undefined,
    })
  for (const add of [
    addServe,
    addRun,
    addFork,
    addValidate,
    addRescore,
    addVerdict,
    addView,
    addToken,
    addEnv,
    addRetrieve,
    addDesktop,
    addList,
    addShow,
    addDrift,
    addConform,
    addExport,
    addImport,
    addDoctor,
    addEngine,
    addGc,
    addBox,
    addBench,
    addBackup,
    addFsck,
    addSalvage,
    addCompletion,
  ]) {
    add(program, cli)
  }
  return program
}

/** Parses, runs, tells failures as one line, and resolves to the exit code. Never rejects. */
export async function runCli(args: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = exitCode.ok
  const cli: Cli = {
    io,
    run: async (command, overrides, body) => {
      const options = command.optsWithGlobals<GlobalOptions>()
      const context =
        command.parent?.parent === null && readers.has(command.name())
          ? openReading(io, options, command.name(), overrides)
          : openContext(io, options, overrides)
      code = await body(await context)
    },
  }
  try {
    if (args.length === 0) buildProgram(cli).outputHelp()
    else await buildProgram(cli).parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCode.ok
    if (io.signal.aborted && !isPaddockError(error)) {
      io.err('Cancelled.')
      return exitCode.cancelled
    }
    const failure = error instanceof CommanderError ? usageError(error) : error
    const known = asPaddockError(failure)
    if (args.includes('--json')) io.err(JSON.stringify({ error: known }))
    else io.err(failureText(failure, args.includes('--verbose')))
    return exitCodeOf(failure)
  }
}

function usageError(error: CommanderError): PaddockError {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
  const hint = rest.join(' ').replace(/[()]/g, '').trim()
  return new PaddockError('USAGE', first, { cause: error, ...(hint === '' ? {} : { fix: hint }) })
}
