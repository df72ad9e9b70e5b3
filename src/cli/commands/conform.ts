import { join } from 'node:path'
import type { Command } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import type { Conformance } from '../conform/contract.ts'
import { environmentFinder } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { conformMarkdown, conformText } from '../present/conform.ts'
import { selectorFor } from '../selectors.ts'

interface ConformCommandOptions {
  readonly command?: string
  readonly markdown?: boolean
}

/** `paddock conform`: what harnesses do on the wire, measured against the scripted engine. */
export function addConform(program: Command, cli: Cli): void {
  program
    .command('conform')
    .description('put harnesses to probes against the scripted engine and print what each was seen to do')
    .argument('[harness...]', 'names of harnesses; by default reference and all that run in a box and need no command')
    .option('--command <line>', 'what the shell and script harnesses run')
    .option('--markdown', 'print a page in the manner of docs/reference/conform.md')
    .addHelpText(
      'after',
      `
Example:
  $ paddock conform reference opencode
  $ paddock conform shell --command 'python3 /opt/my-agent/main.py'

Each harness runs in boxes like any other rollout: one talk with text, awkward arguments and parallel calls under each
token strategy, one call refused with 429, one with 500, one stream cut in its middle, and a sub-agent where it has a tool
for that. Everything printed is read from the store and the engine's journal; \`paddock --data <dir>/conform list\` shows it.
Exit code 1 when a clean probe did not come to its end.`,
    )
    .action(async (names: readonly string[], options: ConformCommandOptions, command: Command) =>
      cli.run(command, {}, (context) => run(context, names, options)),
    )
}

async function run(
  context: CommandContext,
  names: readonly string[],
  options: ConformCommandOptions,
): Promise<ExitCode> {
  const { io, loaded } = context
  const { conform } = await import('../conform/conform.ts')
  const { harnessFor, harnessNames, takesCommand } = await import('../harnesses.ts')
  const { openOwner } = await import('../owner.ts')
  const { submitRun } = await import('../submit.ts')
  const { findTrainerRun } = await import('../execute.ts')
  const { sandboxOf } = await import('../sandbox.ts')
  const asked = names.length > 0 ? names : await harnessNames(loaded)
  const known = await Promise.all(
    asked.map((name) => harnessFor(loaded, name, takesCommand(name) ? (options.command ?? null) : null)),
  )
  // Other agents on the host are made for the tools of one environment.
  const harnesses = known.filter(({ name, place }) => names.length > 0 || place === 'box' || name === 'reference')
  if (options.command !== undefined && !asked.some(takesCommand)) {
    throw new PaddockError('USAGE', '--command is for the harnesses shell and script', {
      fix: 'Leave --command out, or give shell as the harness.',
    })
  }
  const { config } = loaded
  const own = {
    ...config,
    store: { ...config.store, directory: join(config.store.directory, 'conform'), catalogue: null },
    engine: { ...config.engine, url: null },
    proxy: { ...config.proxy, port: 0 },
    control: { ...config.control, port: 0 },
  }
  const owner = await openOwner({
    config: own,
    openMode: false,
    signal: io.signal,
    submit: (inner, asked) => submitRun(inner, { ...loaded, config: own }, asked, io.signal),
    findRun: (inner, asked) => findTrainerRun({ ...loaded, config: own }, inner, asked, io.signal),
    findSelector: (name, part) => selectorFor({ ...loaded, config: own }, name, part),
    findEnvironment: environmentFinder({ ...loaded, config: own }),
  })
  const found: Conformance[] = []
  try {
    for (const harness of harnesses) {
      context.notice(`${harness.name} ${harness.version}`)
      const onNote = (line: string) => context.notice(`  ${line}`)
      const sandbox = (onEvent: Parameters<typeof sandboxOf>[1]) => sandboxOf(own, onEvent)
      found.push(await conform({ owner, sandbox, harness, signal: io.signal, onNote }))
    }
  } finally {
    await owner.close()
  }
  context.result({ harnesses: found }, () =>
    options.markdown === true ? conformMarkdown(found) : conformText(found, context.paint, io.columns),
  )
  const broken = found.some(({ ends }) =>
    ends.some(({ probe, end }) => (probe === 'talk' || probe === 'splice') && end !== 'completed'),
  )
  return broken ? exitCode.problems : exitCode.ok
}
