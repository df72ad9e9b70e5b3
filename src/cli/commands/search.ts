import type { Command } from 'commander'
import type { SearchHit } from '../../server/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { printable } from '../present/colour.ts'
import { plural, shortId } from '../present/units.ts'
import { resolveKind } from '../resolve.ts'
import { openForReading } from '../store.ts'

interface SearchOptions {
  readonly run?: string
  readonly limit: number
}

/** `paddock search`: words in what is recorded, by the same steps as the viewer's page. */
export function addSearch(program: Command, cli: Cli): void {
  program
    .command('search')
    .description('find words in conversations, tool calls and results, commands, verdicts, labels, causes and ids')
    .argument('<words>', 'what to find, as it is written; capital and small letters are the same')
    .option('--run <id>', 'only in this run')
    .option('--limit <n>', 'stop after this many hits', wholeNumber(1), 100)
    .addHelpText(
      'after',
      `
Example:
  $ paddock search "permission denied" --run 5f3a9c21

Newest rollouts first, one line a hit: the rollout, the call or event, where it stands, and the words with what stands around them. It
reads the store from end to end and keeps no index; Ctrl-C stops it.`,
    )
    .action(async (words: string, options: SearchOptions, command: Command) =>
      cli.run(command, {}, (context) => search(context, words, options)),
    )
}

async function search(context: CommandContext, words: string, { run, limit }: SearchOptions): Promise<ExitCode> {
  await using reader = await openForReading(context)
  const { searchStep } = await import('../../server/index.ts')
  const asked = { q: words, ...(await inRun(reader, run)) }
  const hits: SearchHit[] = []
  const looked = { rollouts: 0, calls: 0 }
  let from: string | null = null
  do {
    const part = await searchStep(reader, { ...asked, ...(from === null ? {} : { from }) })
    looked.rollouts += part.looked.rollouts
    looked.calls += part.looked.calls
    for (const hit of part.hits.slice(0, limit - hits.length)) {
      hits.push(hit)
      if (!context.json) context.io.out(lineOf(hit, context))
    }
    from = part.next
  } while (from !== null && hits.length < limit && !context.io.signal.aborted)
  if (context.json) context.io.out(JSON.stringify({ hits, looked, whole: from === null }))
  else {
    const end = from === null ? '' : `; not all was looked at, --limit ${limit} is reached or it was stopped`
    const found = hits.length === 0 ? 'Nothing found' : plural(hits.length, 'hit')
    context.notice(`${found} in ${plural(looked.rollouts, 'rollout')}, ${plural(looked.calls, 'call')}${end}`)
  }
  return exitCode.ok
}

async function inRun(
  reader: Parameters<typeof resolveKind>[0],
  run: string | undefined,
): Promise<{ readonly run?: string }> {
  return run === undefined ? {} : { run: await resolveKind(reader, 'run', run) }
}

function lineOf(hit: SearchHit, { paint }: CommandContext): string {
  const at = hit.call === null ? (hit.event === null ? '' : ` event ${hit.event + 1}`) : ` call ${hit.call.seq}`
  const id = shortId(hit.rolloutId ?? hit.call?.sessionId ?? '')
  const line = (text: string): string => printable(text).replaceAll(/\s+/g, ' ')
  const what = `${hit.where}${hit.of === '' ? '' : ` ${line(hit.of)}`}`
  return `${paint('name', id)}${at}  ${paint('dim', what)}  ${line(hit.before)}${paint('strong', line(hit.match))}${line(hit.after)}`
}
