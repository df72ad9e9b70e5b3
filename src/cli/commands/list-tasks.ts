import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError } from '../../core/index.ts'
import {
  betweenHelp,
  betweenOf,
  memoryQueryOf,
  momentHelp,
  momentOf,
  splitKeys,
  taskPageView,
} from '../../read/index.ts'
import { memoryKeys, type MemoryPage, memorySorts, type StoreReader } from '../../trajectory/index.ts'
import { resolveKind } from '../resolve.ts'

/** Options of `paddock list tasks` alone; they are named as those of `GET /rl/v1/tasks`. */
export interface TaskOptions {
  readonly harness?: string
  readonly variant?: string
  readonly versions?: string
  readonly passRate?: string
  readonly attempts?: string
  readonly uses?: string
  readonly unusedSince?: string
  readonly by?: string
  readonly sort?: (typeof memorySorts)[number]
  readonly descending?: boolean
  readonly after?: string
}

const only = [
  'harness',
  'variant',
  'versions',
  'passRate',
  'attempts',
  'uses',
  'unusedSince',
  'by',
  'sort',
  'descending',
  'after',
]

export function addTaskOptions(command: Command): Command {
  return command
    .option('--harness <name>', 'tasks: only attempts of this harness')
    .option('--variant <name>', 'tasks: only attempts with this variant of the prompt')
    .option('--versions <a..b>', 'tasks: only attempts under these weights of the run, by number', between)
    .option('--pass-rate <a..b>', 'tasks: only those with such a share of passes, such as 0.2..0.8', between)
    .option('--attempts <a..b>', 'tasks: only those with so many attempts, such as 4..', between)
    .option('--uses <a..b>', 'tasks: only those of which a trainer used so many rows, such as ..0', between)
    .option('--unused-since <time>', 'tasks: only those of which a trainer used no row since then', moment)
    .option('--by <keys>', `tasks: a line for each of ${memoryKeys.join(', ')}, separated by commas`, keys)
    .addOption(new Option('--sort <key>', 'tasks: by what they are ordered (default: pass_rate)').choices(memorySorts))
    .option('--descending', 'tasks: the greatest first')
    .option('--after <cursor>', 'tasks: go on behind a page, from the `next` of its --json')
}

/** Throws `USAGE` where one of them is given for something else. */
export function refuseTaskOptions(command: Command, kind: string): void {
  const set = only.filter((name) => command.getOptionValueSource(name) === 'cli')
  if (set.length === 0) return
  const named = set.map((name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`)
  throw new PaddockError(
    'USAGE',
    `${named.join(', ')} is an option of \`paddock list tasks\`, and this lists ${kind}`,
    {
      fix: `Write \`paddock list tasks\`, or leave out ${named.join(', ')}.`,
    },
  )
}

/** A page of what is remembered of tasks. */
export async function listTasks(
  reader: StoreReader,
  options: TaskOptions & { readonly run?: string; readonly limit: number },
): Promise<Awaited<ReturnType<typeof taskPageView>>> {
  const { catalogue } = reader
  if (options.versions !== undefined && options.run === undefined) {
    throw new PaddockError('USAGE', '--versions goes with --run: versions of different runs are not compared', {
      fix: 'Add `--run <id>`; `paddock list runs` shows the ids.',
    })
  }
  const query = memoryQueryOf({
    run: options.run === undefined ? undefined : await resolveKind(reader, 'run', options.run),
    harness: options.harness,
    variant: options.variant,
    task: undefined,
    versions: options.versions,
    pass_rate: options.passRate,
    attempts: options.attempts,
    uses: options.uses,
    unused_since: options.unusedSince,
    by: options.by,
    sort: options.sort ?? 'pass_rate',
    order: options.descending === true ? 'desc' : 'asc',
    limit: options.limit,
    after: options.after,
  })
  const page: MemoryPage = await catalogue.memory(query)
  return taskPageView(page, catalogue)
}

function between(text: string): string {
  if (betweenOf(text) === null) throw new InvalidArgumentError(`The value ${betweenHelp}.`)
  return text
}

function moment(text: string): string {
  if (momentOf(text) === null) throw new InvalidArgumentError(`The value ${momentHelp}.`)
  return text
}

function keys(text: string): string {
  if (splitKeys(text) === null) throw new InvalidArgumentError(`Give some of ${memoryKeys.join(', ')}.`)
  return text
}
