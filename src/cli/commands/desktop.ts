import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { aborted } from '../io.ts'
import { printable } from '../present/colour.ts'
import { sandboxOf } from '../sandbox.ts'

interface DesktopOptions {
  readonly host: string
  readonly port: number
  readonly screen: { readonly width: number; readonly height: number }
  readonly site: readonly string[]
}

/** `paddock desktop`: a desktop in a box behind the HTTP routes of OSWorld's machines, until Ctrl-C. */
export function addDesktop(program: Command, cli: Cli): void {
  program
    .command('desktop')
    .description("open a desktop in a box and serve the routes of OSWorld's machines, for agents that drive those")
    .option('--host <address>', 'address to listen on; it has no authentication', '127.0.0.1')
    .option('--port <n>', 'port to listen on, 0 takes a free one', wholeNumber(0, 65_535), 5000)
    .addOption(
      new Option('--screen <size>', 'pixels of the screen, such as 1280x720')
        .argParser(screenSize)
        .default({ width: 1920, height: 1080 }, '1920x1080'),
    )
    .option(
      '--site <origin>',
      'a web site that its browser may reach, through this process; may be repeated',
      origins,
      [],
    )
    .addHelpText('after', '\nExample:\n  $ paddock desktop --port 5000 --site http://localhost:7770')
    .action(async (options: DesktopOptions, command: Command) =>
      cli.run(command, {}, (context) => desktop(context, options)),
    )
}

async function desktop(context: CommandContext, options: DesktopOptions): Promise<ExitCode> {
  const { serveDesktop } = await import('../../envs/index.ts')
  const { io, loaded, paint } = context
  const sandbox = await sandboxOf(loaded.config)
  try {
    context.notice('Opening a desktop …')
    const onProgress = (line: string) => context.notice(paint('dim', printable(line)))
    await using served = await serveDesktop(sandbox, { ...options, sites: options.site, signal: io.signal, onProgress })
    const { width, height } = options.screen
    if (context.json) io.out(JSON.stringify({ type: 'ready', url: served.url, screen: options.screen }))
    else io.out(`A desktop of ${width}x${height} at ${served.url}`)
    await aborted(io.signal)
    return exitCode.ok
  } finally {
    await sandbox.close()
  }
}

function screenSize(text: string): DesktopOptions['screen'] {
  const [, width, height] = /^(\d{3,4})x(\d{3,4})$/.exec(text) ?? []
  if (width === undefined || height === undefined) throw new InvalidArgumentError('Give it as 1280x720.')
  return { width: Number(width), height: Number(height) }
}

function origins(text: string, before: readonly string[]): readonly string[] {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('Give it as http://localhost:7770.')
  return [...before, url.origin]
}
