import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { aborted } from '../io.ts'
import { plural } from '../present/units.ts'

interface RetrieveOptions {
  readonly host: string
  readonly port: number
  readonly topk: number
  readonly dialect?: 'skyrl' | 'rllm' | 'zerosearch' | 'browsecomp-plus' | 'google'
}

/** `paddock retrieve`: serves a corpus to trainers and agents that have a `/retrieve` URL, until Ctrl-C. */
export function addRetrieve(program: Command, cli: Cli): void {
  program
    .command('retrieve')
    .description(
      'serve a corpus over the /retrieve dialects: Search-R1, verl, slime, SkyRL, rLLM, GEM, ZeroSearch, ReCall, BrowseComp-Plus',
    )
    .argument('<corpus>', 'directory with search.toml, or a JSON-lines file of passages')
    .option('--host <address>', 'address to listen on; it has no authentication', '127.0.0.1')
    .option('--port <n>', 'port to listen on, 0 takes a free one', wholeNumber(0, 65_535), 8000)
    .option('--topk <n>', 'passages per query where the request does not say', wholeNumber(1), 3)
    .addOption(
      new Option(
        '--dialect <name>',
        'what a request of one query at /retrieve is taken for; without it, its body decides',
      ).choices(['skyrl', 'rllm', 'zerosearch', 'browsecomp-plus', 'google']),
    )
    .addHelpText('after', '\nExample:\n  $ paddock retrieve examples/tasks/search --port 8000')
    .action(async (path: string, options: RetrieveOptions, command: Command) =>
      cli.run(command, {}, (context) => retrieve(context, path, options)),
    )
}

async function retrieve(context: CommandContext, path: string, options: RetrieveOptions): Promise<ExitCode> {
  const { corpusAt, openCorpus, serveRetrieve } = await import('../../envs/index.ts')
  const { io, loaded } = context
  const source = await corpusAt(resolve(io.cwd, path))
  context.notice(`Opening ${path}; the first time its index is built …`)
  await using corpus = await openCorpus(join(loaded.config.store.directory, 'corpora'), source)
  await using retriever = await serveRetrieve(corpus, options)
  const { url } = retriever
  if (context.json) io.out(JSON.stringify({ type: 'ready', url, passages: corpus.documents, digest: corpus.digest }))
  else io.out(`${plural(corpus.documents, 'passage')} at ${url}`)
  await aborted(io.signal)
  return exitCode.ok
}
