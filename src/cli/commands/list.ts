import { type Command, Argument } from 'commander'
import type { Event, Id } from '../../core/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { eventLines } from '../present/events.ts'
import { taskTable } from '../present/tasks.ts'
import { groupTable, rolloutTable, runTable, sessionTable } from '../present/listings.ts'
import { resolveRun } from '../resolve.ts'
import { openForReading } from '../store.ts'
import { addTaskOptions, listTasks, refuseTaskOptions, type TaskOptions } from './list-tasks.ts'
import { rolloutView, sessionView } from '../../read/index.ts'
import type { GroupRecord, RolloutView, RunRecord, SessionRecord, StoreReader } from '../../trajectory/index.ts'

const kinds = ['all', 'runs', 'groups', 'rollouts', 'sessions', 'tasks', 'acts'] as const
type Kind = (typeof kinds)[number]

interface ListOptions extends TaskOptions {
  readonly run?: string
  readonly limit: number
}

interface Listing {
  runs?: readonly RunRecord[]
  groups?: readonly GroupRecord[]
  rollouts?: readonly RolloutView[]
  sessions?: readonly SessionRecord[]
  acts?: readonly Event[]
}

/** `paddock list`: what is recorded, newest last. */
export function addList(program: Command, cli: Cli): void {
  const list = program
    .command('list')
    .description(
      'list what is recorded: runs, groups, rollouts, sessions; tasks: what attempts at them came to; acts: who paused, updated, cancelled over the control API',
    )
    .addArgument(new Argument('[kind]', 'what to list').choices(kinds).default('all'))
    .option('--run <id>', 'only of this run')
    .option('--limit <n>', 'at most this many of each', wholeNumber(1), 20)
  addTaskOptions(list)
    .addHelpText(
      'after',
      '\nExample:\n  $ paddock list rollouts --run 5f3a9c21\n  $ paddock list tasks --pass-rate 0.2..0.8 --attempts 4.. --json',
    )
    .action(async (kind: Kind, options: ListOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        await using reader = await openForReading(context)
        if (kind === 'tasks') {
          const page = await listTasks(reader, options)
          const { paint, io } = context
          const nothing = 'No task is remembered that is so. Attempts are remembered once their group has settled.'
          context.result(page, () =>
            page.tasks.length === 0 ? nothing : taskTable(page, { paint, columns: io.columns }),
          )
          return exitCode.ok
        }
        refuseTaskOptions(command, kind)
        const listing = await collect(reader, kind, options)
        context.result(asJson(listing), () => asText(listing, context))
        return exitCode.ok
      }),
    )
}

async function collect(reader: StoreReader, kind: Kind, { run, limit }: ListOptions): Promise<Listing> {
  const { catalogue } = reader
  const runId = run === undefined ? undefined : await resolveRun(reader, run)
  const wants = (one: Kind): boolean => kind === 'all' || kind === one
  const runs = runId === undefined ? await catalogue.runs(limit) : [await catalogue.run(runId)]
  const listing: Listing = {}
  if (wants('runs')) listing.runs = runs
  if (wants('groups')) {
    const groups = await Promise.all(runs.map((one) => catalogue.groups(one.id)))
    listing.groups = groups.flat().slice(0, limit)
  }
  if (wants('rollouts')) {
    listing.rollouts = await catalogue.rollouts({ limit, ...(runId === undefined ? {} : { runId }) })
  }
  if (wants('sessions')) {
    const all = await sessionsOf(reader, runId, limit)
    // The overview shows rollouts already; the other sessions are what `serve` recorded.
    listing.sessions = kind === 'sessions' ? all : all.filter((session) => session.rolloutId === null)
  }
  if (kind === 'acts') {
    const events = await reader.recorder.events({ rolloutId: null })
    listing.acts = events.filter((event) => event.kind === 'act').slice(-limit)
  }
  return listing
}

async function sessionsOf(
  { catalogue, recorder }: StoreReader,
  runId: Id | undefined,
  limit: number,
): Promise<readonly SessionRecord[]> {
  if (runId === undefined) return recorder.sessions({ limit })
  const rollouts = await catalogue.rollouts({ runId })
  const sessions = await Promise.all(rollouts.map(({ id }) => recorder.sessions({ rolloutId: id })))
  return sessions.flat().slice(0, limit)
}

function asJson(listing: Listing): unknown {
  return {
    ...(listing.runs === undefined ? {} : { runs: listing.runs }),
    ...(listing.groups === undefined ? {} : { groups: listing.groups }),
    ...(listing.rollouts === undefined ? {} : { rollouts: listing.rollouts.map(rolloutView) }),
    ...(listing.sessions === undefined ? {} : { sessions: listing.sessions.map(sessionView) }),
    ...(listing.acts === undefined ? {} : { acts: listing.acts }),
  }
}

function asText(listing: Listing, context: CommandContext): string {
  const view = { paint: context.paint, columns: context.io.columns }
  const sections = [
    section('runs', listing.runs, (rows) => runTable(rows, view)),
    section('groups', listing.groups, (rows) => groupTable(rows, view)),
    section('rollouts', listing.rollouts, (rows) => rolloutTable(rows, view)),
    section('sessions', listing.sessions, (rows) => sessionTable(rows, view)),
    section('acts', listing.acts, (rows) => eventLines(rows, context.paint)),
  ].filter((text) => text !== null)
  if (sections.length > 0) return sections.join('\n\n')
  return context.typed(
    'Nothing is recorded yet. `paddock serve` records a harness of your own, `paddock run` runs tasks.',
  )

  function section<T>(title: string, rows: readonly T[] | undefined, draw: (rows: readonly T[]) => string) {
    return rows === undefined || rows.length === 0 ? null : `${context.paint('strong', title)}\n${draw(rows)}`
  }
}
