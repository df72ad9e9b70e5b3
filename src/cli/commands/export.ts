import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { PaddockError, present } from '../../core/index.ts'
import {
  builtInExporters,
  type OneRowRule,
  type RowView,
  type SelectionQuery,
  type WeightRule,
} from '../../trajectory/index.ts'
import { type Cli, type CommandContext, repeated, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { exportersOf } from '../exporters.ts'
import { exportText } from '../present/manifest.ts'
import { resolveKind } from '../resolve.ts'
import { selectorFor } from '../selectors.ts'
import { openForReading } from '../store.ts'
import type { StoreReader } from '../../trajectory/index.ts'

interface ExportOptions {
  readonly format: string
  readonly out: string
  readonly run?: readonly string[]
  readonly group?: readonly string[]
  readonly rollout?: readonly string[]
  readonly session?: readonly string[]
  readonly env?: readonly string[]
  readonly harness?: readonly string[]
  readonly policy?: string
  readonly minReward?: number
  readonly maxReward?: number
  readonly minGroupSize?: number
  readonly exactGroupSize?: number
  readonly oneRowPerRollout?: OneRowRule
  readonly wholeAnswers?: boolean
  readonly view?: RowView
  readonly select?: string
  readonly dropZeroVariance?: boolean
  readonly weightRule?: WeightRule
  readonly includeNullVerdicts?: boolean
  readonly includeTainted?: boolean
  readonly includeUnfinished?: boolean
  readonly allow?: readonly string[]
  readonly option?: Readonly<Record<string, unknown>>
  readonly limit?: number
  readonly sideChannels?: boolean
  readonly spans?: boolean
  readonly replace?: boolean
}

const allowances = [
  'mixed-logprob-kinds',
  'unknown-logprob-kind',
  'mixed-verifiers',
  'mixed-weights',
  'shared-verdicts',
  'unvalidated-verdicts',
] as const

/** `paddock export`: rows for a trainer, with a manifest that accounts for every sampled token. */
export function addExport(program: Command, cli: Cli): void {
  program
    .command('export')
    .description('write rows for a trainer, and a manifest that accounts for every sampled token')
    .requiredOption('--format <name>', `${builtInExporters.names.join(', ')}, or one of the configuration`)
    .requiredOption('--out <dir>', 'directory to write; appears whole or not at all')
    .option('--run <id>', 'only of this run; may be repeated', repeated)
    .option('--group <id>', 'only of this group; may be repeated', repeated)
    .option('--rollout <id>', 'only this rollout; may be repeated', repeated)
    .option('--session <id>', 'only the rollout of this session; may be repeated', repeated)
    .option('--env <name>', 'only of this environment; may be repeated', repeated)
    .option('--harness <name>', 'only of this harness; may be repeated', repeated)
    .option('--policy <name>', 'only what this policy sampled, with its rewards, where a run has several')
    .option('--min-reward <x>', 'leave out rollouts below', real)
    .option('--max-reward <x>', 'leave out rollouts above', real)
    .option('--min-group-size <n>', 'leave out groups with fewer rollouts', wholeNumber(1))
    .option(
      '--exact-group-size <n>',
      'this many rollouts in each group: smaller groups are left out, of larger ones the first by slot stay',
      wholeNumber(1),
    )
    .addOption(
      new Option(
        '--one-row-per-rollout <rule>',
        'for trainers that take one row for one rollout: which row stays, or all with the advantage split',
      ).choices(['longest', 'last', 'split-advantage']),
    )
    .addOption(
      new Option('--view <view>', 'prompts as the policy saw them, or without what was injected').choices([
        'as_sampled',
        'clean',
      ]),
    )
    .option('--whole-answers', 'answers with a token that lacks its logprob are context, not trained')
    .option(
      '--select <name>',
      'leave the choice among the rollouts of each group to this selector of the configuration',
    )
    .option('--drop-zero-variance', 'leave out groups whose rewards are all the same')
    .addOption(
      new Option('--weight-rule <rule>', 'how a reward is spread over the rows of a rollout').choices([
        'full',
        '1/K',
        'per-token',
        'first-owner',
      ]),
    )
    .option('--include-null-verdicts', 'keep rollouts without a number')
    .option('--include-tainted', 'keep rollouts whose harness saw a fault of ours')
    .option('--include-unfinished', 'keep rollouts that have not ended, or ended as infra or cancelled')
    .addOption(
      new Option('--allow <what>', 'allow what is refused otherwise; may be repeated')
        .choices(allowances)
        .argParser(collectAllowance),
    )
    .option('--option <key=value>', 'option of the format (value: JSON or text); may be repeated', collectOption)
    .option('--side-channels', 'alternatives per token and routed experts too, as files (jsonl)')
    .option('--spans', "whose each token is: a message's words, the template's scaffold, an answer (jsonl)")
    .option('--limit <n>', 'at most this many rollouts', wholeNumber(1))
    .option('--replace', 'replace an earlier export at --out')
    .addHelpText('after', '\nExample:\n  $ paddock export --format verl --run 5f3a9c21 --out out/verl')
    .action(async (options: ExportOptions, command: Command) =>
      cli.run(command, {}, (context) => writeOut(context, options)),
    )
}

async function writeOut(context: CommandContext, options: ExportOptions): Promise<ExitCode> {
  const { io } = context
  const exporter = (await exportersOf(context.loaded)).get(options.format)
  const { runExport } = await import('../../trajectory/index.ts')
  const { chatRequestOf } = await import('../../proxy/index.ts')
  const { version } = await import('../version.ts')
  const out = resolve(io.cwd, options.out)
  await using reader = await openForReading(context)
  const manifest = await runExport({
    reader,
    readRequest: chatRequestOf,
    query: await queryOf(context, reader, options),
    exporter,
    options: options.option ?? {},
    out,
    replace: options.replace ?? false,
    ...(options.sideChannels === true ? { sideChannels: reader.blobs } : {}),
    allow: {
      mixedLogprobKinds: allows(options, 'mixed-logprob-kinds'),
      unknownLogprobKind: allows(options, 'unknown-logprob-kind'),
      mixedVerifiers: allows(options, 'mixed-verifiers'),
      mixedWeights: allows(options, 'mixed-weights'),
      sharedVerdicts: allows(options, 'shared-verdicts'),
      unvalidatedVerdicts: allows(options, 'unvalidated-verdicts'),
    },
    paddockVersion: version,
    signal: io.signal,
  })
  context.result({ out, manifest }, () => exportText(out, manifest, context.paint))
  return exitCode.ok
}

async function queryOf(context: CommandContext, reader: StoreReader, options: ExportOptions): Promise<SelectionQuery> {
  const ids = async (kind: 'run' | 'group' | 'rollout' | 'session', texts: readonly string[] | undefined) => {
    if (texts === undefined) return undefined
    return Promise.all(texts.map((text) => resolveKind(reader, kind, text)))
  }
  const sessions = (await ids('session', options.session)) ?? []
  const ofSessions = await Promise.all(
    sessions.map(async (id) => {
      const { rolloutId } = (await reader.recorder.session(id)).session
      if (rolloutId === null)
        throw new PaddockError('NOT_FOUND', `session ${id} belongs to no rollout`, {
          fix: 'Give a session of a rollout; `paddock list rollouts` shows them.',
        })
      return rolloutId
    }),
  )
  const rollouts = [...((await ids('rollout', options.rollout)) ?? []), ...ofSessions]
  return present({
    runIds: await ids('run', options.run),
    groupIds: await ids('group', options.group),
    rolloutIds: rollouts.length > 0 ? rollouts : undefined,
    environments: options.env,
    harnesses: options.harness,
    policy: options.policy,
    minReward: options.minReward,
    maxReward: options.maxReward,
    minGroupSize: options.minGroupSize,
    exactGroupSize: options.exactGroupSize,
    oneRowPerRollout: options.oneRowPerRollout,
    wholeAnswersOnly: options.wholeAnswers,
    view: options.view,
    selector: options.select === undefined ? undefined : await selectorFor(context.loaded, options.select, 'select'),
    dropZeroVariance: options.dropZeroVariance,
    weightRule: options.weightRule,
    includeSpans: options.spans,
    includeNullVerdicts: options.includeNullVerdicts,
    includeTainted: options.includeTainted,
    includeUnfinished: options.includeUnfinished,
    limit: options.limit,
  })
}

function allows(options: ExportOptions, what: (typeof allowances)[number]): boolean {
  return options.allow?.includes(what) ?? false
}

function collectAllowance(text: string, before: readonly string[] = []): readonly string[] {
  if (!allowances.some((allowance) => allowance === text)) {
    throw new InvalidArgumentError(`Allowed choices are ${allowances.join(', ')}.`)
  }
  return [...before, text]
}

function collectOption(
  text: string,
  before: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Give key=value.')
  const value = text.slice(at + 1)
  try {
    return { ...before, [text.slice(0, at)]: JSON.parse(value) as unknown }
  } catch {
    return { ...before, [text.slice(0, at)]: value }
  }
}

function real(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number.')
  return value
}
