import { type Command, Argument } from 'commander'
import type { Event, Id } from '../../core/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode } from '../exit.ts'
import { eventLines } from '../present/events.ts'
import { taskTable } from '../present/tasks.ts'
import { groupTable, rolloutTable, runTable, sessionTable, type TaskNames } from '../present/listings.ts'
import { resolveKind } from '../resolve.ts'
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
  /** How many there are of each; null: more than are listed. */
  readonly total: Partial<Record<Kind, number | null>>
  runs?: readonly { readonly run: RunRecord; readonly rollouts: readonly RolloutView[] }[]
  /** Names of the tasks of groups and rollouts. */
  tasks: TaskNames
  groups?: readonly GroupRecord[]
  rollouts?: readonly RolloutView[]
  sessions?: readonly SessionRecord[]
  acts?: readonly Event[]
}

/** `paddock list`: what is recorded, newest first. */
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
  const runId = run === undefined ? undefined : await resolveKind(reader, 'run', run)
  const wants = (one: Kind): boolean => kind === 'all' || kind === one
  const runs = runId === undefined ? await catalogue.runs() : [await catalogue.run(runId)]
  const listing: Listing = { total: {}, tasks: new Map() }
  if (wants('runs')) {
    listing.total.runs = runs.length
    const shown = runs.slice(0, limit)
    listing.runs = await Promise.all(
      shown.map(async (one) => ({ run: one, rollouts: await catalogue.rollouts({ runId: one.id }) })),
    )
  }
  if (wants('groups')) {
    const groups = await Promise.all(runs.map(async (one) => (await catalogue.groups(one.id)).toReversed()))
    listing.total.groups = groups.flat().length
    listing.groups = groups.flat().slice(0, limit)
  }
  if (wants('rollouts')) {
    listing.total.rollouts = await catalogue.countRollouts({ runId: runId ?? null })
    listing.rollouts = await catalogue.rollouts({ limit, before: null, ...(runId === undefined ? {} : { runId }) })
  }
  if (wants('sessions')) {
    const sessions = await sessionsOf(reader, kind, runId, limit + 1)
    listing.total.sessions = sessions.length > limit ? null : sessions.length
    listing.sessions = sessions.slice(0, limit)
  }
  if (kind === 'acts') {
    const events = await reader.recorder.events({ rolloutId: null })
    const acts = events.filter((event) => event.kind === 'act').toReversed()
    listing.total.acts = acts.length
    listing.acts = acts.slice(0, limit)
  }
  const digests = [...(listing.groups ?? []), ...(listing.rollouts ?? [])].map(({ taskDigest }) => taskDigest)
  const tasks = await Promise.all([...new Set(digests)].map((digest) => catalogue.task(digest)))
  listing.tasks = new Map(tasks.map(({ digest, name }) => [digest, name]))
  return listing
}

/** The newest first. The overview shows rollouts already; the other sessions are what `serve` recorded. */
async function sessionsOf(
  { catalogue, recorder }: StoreReader,
  kind: Kind,
  runId: Id | undefined,
  limit: number,
): Promise<readonly SessionRecord[]> {
  if (kind === 'all') return runId === undefined ? recorder.sessions({ rolloutId: null, limit, newestFirst: true }) : []
  if (runId === undefined) return recorder.sessions({ limit, newestFirst: true })
  const rollouts = await catalogue.rollouts({ runId, before: null })
  const sessions = await Promise.all(rollouts.map(({ id }) => recorder.sessions({ rolloutId: id, newestFirst: true })))
  return sessions.flat().slice(0, limit)
}

function asJson(listing: Listing): unknown {
  return {
    ...(listing.runs === undefined ? {} : { runs: listing.runs.map(({ run }) => run) }),
    ...(listing.groups === undefined ? {} : { groups: listing.groups }),
    ...(listing.rollouts === undefined ? {} : { rollouts: listing.rollouts.map(rolloutView) }),
    ...(listing.sessions === undefined ? {} : { sessions: listing.sessions.map(sessionView) }),
    ...(listing.acts === undefined ? {} : { acts: listing.acts }),
    total: listing.total,
  }
}

function asText(listing: Listing, context: CommandContext): string {
  const view = { paint: context.paint, columns: context.io.columns }
  const sections = [
    section('runs', listing.runs, (rows) => runTable(rows, view)),
    section('groups', listing.groups, (rows) => groupTable(rows, listing.tasks, view)),
    section('rollouts', listing.rollouts, (rows) => rolloutTable(rows, view, listing.tasks)),
    section('sessions', listing.sessions, (rows) => sessionTable(rows, view)),
    section('acts', listing.acts, (rows) => eventLines(rows, context.paint)),
  ].filter((text) => text !== null)
  if (sections.length > 0) return sections.join('\n\n')
  return context.typed(
    'Nothing is recorded yet. `paddock serve` records a harness of your own, `paddock run` runs tasks.',
  )

  function section<T>(title: Kind, rows: readonly T[] | undefined, draw: (rows: readonly T[]) => string) {
    if (rows === undefined || rows.length === 0) return null
    return `${context.paint('strong', title)}\n${draw(rows)}${more(rows.length, listing.total[title])}`
  }

  function more(shown: number, total: number | null | undefined): string {
    if (total === null) return `\nthe newest ${shown}; a greater --limit shows more`
    return total === undefined || total <= shown ? '' : `\n${shown} of ${total}; --limit ${total} shows all`
  }
}
