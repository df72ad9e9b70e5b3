import type { Command } from 'commander'
import type { OwnerAddress } from '../../access/index.ts'
import { PaddockError, type Task } from '../../core/index.ts'
import type { EnvironmentRegistry } from '../../envs/index.ts'
import type { Rescored } from '../../rollout/index.ts'
import type { RolloutView, StoreReader } from '../../trajectory/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { ownerOf } from '../find-owner.ts'
import { table } from '../present/table.ts'
import { plural, shortId } from '../present/units.ts'
import { type PublicNetwork, publicNetworkOf, publicNetworkOption } from '../public-network.ts'
import { resolveId, resolveKind } from '../resolve.ts'
import { sandboxOf } from '../sandbox.ts'
import { openForReading } from '../store.ts'
import { taskPlace } from '../task-place.ts'

interface RescoreOptions {
  readonly trustTasks?: boolean
  readonly publicNetwork?: PublicNetwork
  readonly all?: boolean
  readonly tasks?: string
  readonly env?: string
  readonly dryRun?: boolean
  readonly parallel: number
}

/** `paddock rescore`: today's verifiers on stored artifacts. Exit code 3 when boxes failed. */
export function addRescore(program: Command, cli: Cli): void {
  program
    .command('rescore')
    .description('verify recorded rollouts with the verifiers of today, unverified ones too, and show what changes')
    .argument('[id...]', 'runs, groups or rollouts')
    .option('--all', 'every rollout of the data directory')
    .option('--tasks <dir>', 'take these tasks where the digest is the same: the verifier has moved')
    .option('--env <name>', 'environment of --tasks: a name, or a path of a plugin', 'terminal')
    .option('--trust-tasks', 'let programs that the tasks bring for this machine run, as you (cua-bench, sidecars)')
    .addOption(publicNetworkOption())
    .option('--dry-run', 'only say what would change')
    .option('--parallel <n>', 'verifications at once', wholeNumber(1), 2)
    .addHelpText(
      'after',
      `
Example:
  $ paddock rescore 5f3a9c21 --dry-run

Where a coordinator or \`serve\` has the data directory, it and its nodes verify.`,
    )
    .action(async (ids: readonly string[], options: RescoreOptions, command: Command) =>
      cli.run(command, publicNetworkOf(options), async (context) => {
        requireChoice(ids, options)
        const owner = await ownerOf(context)
        if (owner !== null) return rescoreAtOwner(context, owner, { ids, options })
        const { openStore } = await import('../../trajectory/index.ts')
        const { rescoreRollouts } = await import('../../rollout/index.ts')
        const { roleEngine } = await import('../role-engine.ts')
        const { io, loaded } = context
        const environments = await environmentsOf(loaded, {
          also: options.env,
          cwd: io.cwd,
          trustTasks: options.trustTasks ?? false,
        })
        const tasks = await tasksOf(context, environments, options)
        const { directory, synchronous, catalogue } = loaded.config.store
        // A directory that is not there is a mistake to be told, not one to be made.
        await (await openForReading(context)).close()
        await using store = await openStore(directory, { synchronous, catalogue, work: 'rescore' })
        const rollouts = await chosen(store, ids, options)
        await using judge = roleEngine('judge', loaded.config, { store })
        const sandbox = await sandboxOf(loaded.config)
        try {
          context.notice(`Verifying ${plural(rollouts.length, 'rollout')} again …`)
          const dryRun = options.dryRun ?? false
          const rescored = await rescoreRollouts({
            store,
            environment: (name) => environments.get(name),
            sandbox,
            judge: judge.find,
            rollouts,
            tasks,
            dryRun,
            parallel: options.parallel,
            signal: io.signal,
          })
          context.result({ dryRun, rollouts: rescored }, () => asText(rescored, dryRun, context))
          return rescored.some(({ outcome }) => outcome === 'infra') ? exitCode.infra : exitCode.ok
        } finally {
          await sandbox.close()
        }
      }),
    )
}

function requireChoice(ids: readonly string[], { all }: RescoreOptions): void {
  if ((ids.length === 0) !== (all === true)) {
    throw new PaddockError('USAGE', 'name runs, groups or rollouts, or give --all', {
      fix: '`paddock list` shows the ids.',
    })
  }
}

/** Through the process that owns the data directory: itself and its nodes verify. */
async function rescoreAtOwner(
  context: CommandContext,
  owner: OwnerAddress,
  { ids, options }: { readonly ids: readonly string[]; readonly options: RescoreOptions },
): Promise<ExitCode> {
  const { tasks, trustTasks, publicNetwork } = options
  const alone = Object.entries({
    '--tasks': tasks,
    '--trust-tasks': trustTasks,
    '--public-network': publicNetwork,
  }).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  if (alone.length > 0) {
    throw new PaddockError('USAGE', `${alone.join(' and ')} hold for a rescore that this process does itself`, {
      fix: `Leave it out, or stop the process that owns the data directory (pid ${owner.pid}).`,
    })
  }
  const { rescoreThere } = await import('../rescore-there.ts')
  await using reader = await openForReading(context)
  const rollouts = (await chosen(reader, ids, options)).map(({ id }) => id)
  const dryRun = options.dryRun ?? false
  context.notice(`Verifying ${plural(rollouts.length, 'rollout')} again, at pid ${owner.pid} …`)
  const asked = { rollouts, dryRun, parallel: options.parallel }
  const rescored = rollouts.length === 0 ? [] : await rescoreThere(owner, asked, context.io.signal)
  context.result({ dryRun, rollouts: rescored }, () => asText(rescored, dryRun, context))
  return rescored.some(({ outcome }) => outcome === 'infra') ? exitCode.infra : exitCode.ok
}

async function tasksOf(
  { io }: CommandContext,
  environments: EnvironmentRegistry,
  options: RescoreOptions,
): Promise<readonly Task[]> {
  if (options.tasks === undefined) return []
  return environments.get(options.env ?? 'terminal').load(taskPlace(io.cwd, options.tasks), { signal: io.signal })
}

async function chosen(
  store: StoreReader,
  ids: readonly string[],
  { all }: RescoreOptions,
): Promise<readonly RolloutView[]> {
  const { catalogue } = store
  const found =
    all === true ? [await catalogue.rollouts({})] : await Promise.all(ids.map((id) => rolloutsOf(store, id)))
  const ended = found.flat().filter((rollout) => rollout.end !== null || rollout.work !== null)
  return [...new Map(ended.map((rollout) => [rollout.id, rollout])).values()]
}

async function rolloutsOf(store: StoreReader, text: string): Promise<readonly RolloutView[]> {
  const { kind, id } = await resolveId(store, text)
  switch (kind) {
    case 'run':
      return store.catalogue.rollouts({ runId: id })
    case 'group':
      return store.catalogue.rollouts({ groupId: id })
    case 'rollout':
      return [await store.catalogue.rollout(id)]
    case 'session':
      return [await store.catalogue.rollout(await resolveKind(store, 'rollout', text))]
  }
}

function asText(rescored: readonly Rescored[], dryRun: boolean, { paint, io }: CommandContext): string {
  const count = (outcome: Rescored['outcome']) => rescored.filter((one) => one.outcome === outcome).length
  const told = rescored.filter(({ outcome }) => outcome !== 'same')
  const rows = told.map((one) => [one.task, shortId(one.rolloutId), one.outcome, one.detail])
  const header = [{ title: 'task' }, { title: 'rollout' }, { title: 'outcome' }, { title: 'verdict' }]
  const summary = [
    `${plural(rescored.length, 'rollout')} verified again`,
    ...(count('verified') > 0 ? [`${count('verified')} that waited for their verdict`] : []),
    `${count('changed')} changed`,
    `${count('confirmed')} confirmed by another verifier`,
    `${count('same')} the same`,
    ...(count('outranked') > 0 ? [`${count('outranked')} where a late verdict stays in force`] : []),
    ...(count('not_stored') > 0 ? [`${count('not_stored')} without stored artifacts`] : []),
    ...(count('infra') > 0 ? [`${count('infra')} not verified, for faults of boxes`] : []),
  ].join(', ')
  const end = dryRun ? `${summary}. Nothing was written.` : `${summary}.`
  return rows.length === 0 ? end : `${table(header, rows, { paint, columns: io.columns })}\n\n${end}`
}
