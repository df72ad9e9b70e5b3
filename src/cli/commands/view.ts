import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { PaddockError } from '../../core/index.ts'
import type { serveView } from '../../server/index.ts'
import type { StoreReader } from '../../trajectory/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { namedStore, openForReading } from '../store.ts'

/** `paddock view`: the viewer in a browser, over a data directory. Takes no lock and writes nothing. */
export function addView(program: Command, cli: Cli): void {
  program
    .command('view')
    .description('look at what is recorded, in a browser: runs, groups, rollouts, sessions with their tokens')
    .argument('[data]', 'data directory (default: --data)')
    .option('--port <n>', 'port on 127.0.0.1; 0 takes a free one', wholeNumber(0, 65_535), 0)
    .option('--annotate', 'people may give labels and late verdicts there; takes the store, or goes through its owner')
    .addHelpText(
      'after',
      `
Example:
  $ paddock view .paddock

Takes no lock and writes nothing: it works on a closed store and beside a running Paddock. The printed link signs one
browser in, once; Enter prints a fresh one, Ctrl-C ends the viewer. With --annotate whoever signs in by the link may write, and
so may whoever signs in with a token of role annotate, trainer or admin.`,
    )
    .action(async (data: string | undefined, options: ViewOptions, command: Command) =>
      cli.run(command, namedStore(cli, data), (context) => view(context, options)),
    )
}

interface ViewOptions {
  readonly port: number
  readonly annotate?: boolean
}

async function view(context: CommandContext, { port, annotate = false }: ViewOptions): Promise<ExitCode> {
  const webDirectory = await webFiles(context)
  if (!annotate) {
    await using reader = await openForReading(context)
    return await serveUntilEnd(context, reader, { port, webDirectory })
  }
  const { openForAnnotating } = await import('../annotating.ts')
  await using writing = await openForAnnotating(context)
  return await serveUntilEnd(context, writing.reader, { port, webDirectory, annotator: writing.annotator })
}

async function serveUntilEnd(
  context: CommandContext,
  reader: StoreReader,
  o: Parameters<typeof serveView>[1],
): Promise<ExitCode> {
  const { serveView: serve } = await import('../../server/index.ts')
  const server = await serve(reader, o)
  try {
    context.io.out(context.json ? JSON.stringify({ origin: server.origin, link: server.link() }) : server.link())
    context.notice(`Viewer of ${reader.directory}. Open the link; Enter prints a fresh one, Ctrl-C ends the viewer.`)
    await ended(() => context.io.out(server.link()))
  } finally {
    await server.close()
  }
  return exitCode.ok
}

/** Resolves at SIGINT or SIGTERM; each line typed until then calls `onLine`. */
function ended(onLine: () => void): Promise<void> {
  return new Promise((resolve) => {
    const lines = process.stdin.isTTY ? createInterface({ input: process.stdin }) : null
    const end = (): void => {
      lines?.close()
      resolve()
    }
    lines?.on('line', onLine).on('SIGINT', end)
    process.once('SIGINT', end).once('SIGTERM', end)
  })
}

/** The built pages. From source they are built at the first use. Throws `NOT_FOUND` where neither is there. */
async function webFiles(context: CommandContext): Promise<string> {
  const root = new URL(import.meta.url.endsWith('.ts') ? '../../../' : '../../../../', import.meta.url)
  const built = fileURLToPath(new URL('dist/web', root))
  if (existsSync(`${built}/index.html`)) return built
  const config = fileURLToPath(new URL('web/vite.config.ts', root))
  if (!existsSync(config)) {
    throw new PaddockError('NOT_FOUND', `the viewer's pages are not in ${built}`, { fix: 'Install the package again.' })
  }
  context.notice('Building the viewer, once …')
  const { build } = await import('vite')
  await build({ configFile: config, logLevel: 'error' })
  return built
}
