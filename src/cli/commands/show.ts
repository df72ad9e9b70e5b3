import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Event, Id } from '../../core/index.ts'
import { knownTokenTexts, rolloutView, rowsOf, segmentMasks, sessionLogView, toolResultsOf } from '../../read/index.ts'
import {
  familyOf,
  type RolloutView,
  type SessionLog,
  type StoreReader,
  treeOf,
  verdictInForce,
} from '../../trajectory/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { printable, printableText } from '../present/colour.ts'
import { conversation } from '../present/conversation.ts'
import { eventLines } from '../present/events.ts'
import { endCell, groupTable, rewardCell, rolloutTable, runTable, verdictCell } from '../present/listings.ts'
import { rowsText } from '../present/rows.ts'
import { treeText } from '../present/tree.ts'
import { plural } from '../present/units.ts'
import { writeFrames } from '../frames/index.ts'
import { resolveId } from '../resolve.ts'

import { openForReading } from '../store.ts'

interface ShowOptions {
  readonly tokens: number
  readonly lines: number
  readonly events: boolean
  readonly frames?: string
  readonly tree?: boolean
  readonly toolResults?: boolean
}

/** `paddock show`: one rollout or session as a conversation, with tokens, masks, classes, tool results and verdict. */
export function addShow(program: Command, cli: Cli): void {
  program
    .command('show')
    .description('print a rollout or a session: the conversation with tokens, masks, tool results and the verdict')
    .argument('<id>', 'id of a rollout, session, group or run; the short form that tables print will do')
    .option('--tokens <n>', 'tokens printed per answer', wholeNumber(0), 32)
    .option('--lines <n>', 'lines printed per message', wholeNumber(1), 20)
    .option('--no-events', 'leave the event log out')
    .option('--frames <directory>', 'of a rollout: write the pictures that its tools gave, and a strip of them, there')
    .option(
      '--tool-results',
      'of a rollout: what its tools said to which arguments, as JSON lines: the record of a virtual tool',
    )
    .option(
      '--tree',
      'of a rollout: the rollouts that go on from it or that it goes on from, and what each place is worth',
    )
    .addHelpText(
      'after',
      `
Example:
  $ paddock show 5f3a9c21 --tokens 200
  $ paddock show 5f3a9c21 --frames frames    then open frames/index.html

⟦ ⟧ holds the tokens that a trainer would learn from; other tokens are masked. ⟨123⟩ is an id whose text is not known.`,
    )
    .action(async (id: string, options: ShowOptions, command: Command) =>
      cli.run(command, {}, (context) => show(context, id, options)),
    )
}

async function show(context: CommandContext, text: string, options: ShowOptions): Promise<ExitCode> {
  await using reader = await openForReading(context)
  const found = await resolveId(reader, text)
  switch (found.kind) {
    case 'run':
      await showRun(context, reader, found.id)
      break
    case 'group':
      await showGroup(context, reader, found.id)
      break
    case 'rollout':
      if (options.tree === true) await showTree(context, reader, found.id)
      else await showRollout(context, reader, found.id, options)
      break
    case 'session': {
      const log = await reader.recorder.session(found.id)
      const rollout = log.session.rolloutId === null ? null : await reader.catalogue.rollout(log.session.rolloutId)
      const body = context.json ? '' : await sessionText(context, reader, log, rollout, options)
      context.result(context.json ? await sessionJson(log, rollout) : null, () => body)
      break
    }
  }
  return exitCode.ok
}

async function showRun(context: CommandContext, { catalogue, recorder }: StoreReader, id: Id): Promise<void> {
  const run = await catalogue.run(id)
  const rollouts = await catalogue.rollouts({ runId: id })
  const groups = await catalogue.groups(id)
  const acts = actsOn(await recorder.events({ rolloutId: null }), [id, ...groups.map((group) => group.id)])
  const view = { paint: context.paint, columns: context.io.columns }
  context.result({ run, rollouts: rollouts.map(rolloutView), acts }, () =>
    [runTable([{ run, rollouts }], view), '', rolloutTable(rollouts, view), ...actLines(acts, context)].join('\n'),
  )
}

async function showGroup(context: CommandContext, { catalogue, recorder }: StoreReader, id: Id): Promise<void> {
  const group = await catalogue.group(id)
  const rollouts = await catalogue.rollouts({ groupId: id })
  const tasks = new Map([[group.taskDigest, (await catalogue.task(group.taskDigest)).name]])
  const acts = actsOn(await recorder.events({ rolloutId: null }), [id])
  const view = { paint: context.paint, columns: context.io.columns }
  context.result({ group, rollouts: rollouts.map(rolloutView), acts }, () =>
    [groupTable([group], tasks, view), '', rolloutTable(rollouts, view), ...actLines(acts, context)].join('\n'),
  )
}

/** What was done to one of these over the control API. */
function actsOn(events: readonly Event[], ids: readonly Id[]): readonly Event[] {
  return events.filter((event) => event.kind === 'act' && ids.includes(event.path['id'] ?? ''))
}

function actLines(acts: readonly Event[], { paint }: CommandContext): readonly string[] {
  return acts.length === 0 ? [] : ['', paint('strong', 'done over the control API'), eventLines(acts, paint)]
}

async function showTree(context: CommandContext, reader: StoreReader, id: Id): Promise<void> {
  const family = await familyOf(reader, id)
  const rollouts = family.map(({ rolloutId, parent, reward }) => ({ rolloutId, parent, reward }))
  context.result({ rollouts, nodes: treeOf(family) }, () => treeText(family, context.paint))
}

async function showRollout(context: CommandContext, reader: StoreReader, id: Id, options: ShowOptions): Promise<void> {
  const { catalogue, recorder } = reader
  const rollout = await catalogue.rollout(id)
  const task = await catalogue.task(rollout.taskDigest)
  const sessions = await recorder.sessions({ rolloutId: id })
  const logs = await Promise.all(sessions.map((session) => recorder.session(session.id)))
  const events = await recorder.events({ rolloutId: id })
  if (options.frames !== undefined) {
    const directory = resolve(context.io.cwd, options.frames)
    const frames = await writeFrames(reader, { events, logs, directory })
    context.result({ directory, frames }, () => `${plural(frames.length, 'frame')} in ${join(directory, 'index.html')}`)
    return
  }
  if (options.toolResults === true) {
    const { results, unknown } = toolResultsOf(logs, events)
    if (unknown > 0) context.notice(`Left out: ${plural(unknown, 'result')} whose arguments are not known.`)
    context.result(results, () => results.map((one) => JSON.stringify(one)).join('\n'))
    return
  }
  if (context.json) {
    const value = {
      rollout: rolloutView(rollout),
      task,
      sessions: await Promise.all(logs.map((log) => sessionJson(log, rollout))),
      events,
    }
    context.result(value, () => '')
    return
  }
  const { paint } = context
  const texts = []
  for (const log of logs) texts.push(await sessionText(context, reader, log, rollout, { ...options, events: false }))
  const sections = [
    rolloutHeader(rollout, task.name, context),
    ...texts,
    ...(options.events && events.length > 0 ? [`${paint('strong', 'events')}\n${eventLines(events, paint)}`] : []),
    verdictText(rollout, context),
  ]
  context.io.out(sections.join('\n\n'))
}

function rolloutHeader(rollout: RolloutView, task: string, { paint }: CommandContext): string {
  const taint = rollout.taints.length === 0 ? '' : paint('warn', `, tainted: ${rollout.taints.join(', ')}`)
  const detail = rollout.endDetail === '' ? '' : ` (${printable(rollout.endDetail.split('\n')[0] ?? '')})`
  return [
    `${paint('strong', 'rollout')} ${rollout.id}`,
    `task ${printable(task)}, harness ${printable(rollout.harness)}, slot ${rollout.slot}, attempt ${rollout.attempt + 1}`,
    `end ${endCell(rollout.end, paint, rollout.work !== null)}${detail}${taint}`,
  ].join('\n')
}

function verdictText(rollout: RolloutView, { paint }: CommandContext): string {
  const verdict = verdictInForce(rollout.verdicts)
  if (verdict === null) return `${paint('strong', 'verdict')} none`
  const components = Object.entries(verdict.components).map(([name, value]) => `  ${printable(name)}  ${value}`)
  const evidence = printableText(verdict.evidence.trim())
  return [
    `${paint('strong', 'verdict')} ${verdictCell(verdict, paint)}, reward ${rewardCell(verdict, paint)}`,
    ...(verdict.reward === null
      ? [`  reason: ${printable(verdict.reason)}`]
      : Object.entries(verdict.byPolicy ?? {}).map(([policy, reward]) => `  policy ${printable(policy)}  ${reward}`)),
    ...components,
    `  verifier ${printable(verdict.verifier.id)} ${printable(verdict.verifier.version)}, trust ${verdict.trust}`,
    ...(verdict.token === undefined ? [] : [`  given under the token ${printable(verdict.token)}`]),
    ...(evidence === ''
      ? []
      : evidence
          .split('\n')
          .slice(-20)
          .map((line) => `  | ${line}`)),
  ].join('\n')
}

async function sessionJson(log: SessionLog, rollout: RolloutView | null) {
  const rows = rowsOf(log, rollout)
  return {
    ...sessionLogView(log),
    rows: rows.map((row) => ({
      id: row.id,
      tokens: [...row.tokens],
      mask: [...row.mask],
      logprobs: [...row.logprobs],
      logprobKind: row.logprobKind,
      promptLength: row.promptLength,
      segments: row.segments,
    })),
  }
}

/** Which of several policies a session belongs to. */
function policyWords({ name, trained }: SessionLog['session']['policy']): readonly string[] {
  return name === undefined ? [] : [`policy ${name}${trained === false ? ' (not trained)' : ''}`]
}

async function sessionText(
  context: CommandContext,
  reader: StoreReader,
  log: SessionLog,
  rollout: RolloutView | null,
  options: ShowOptions,
): Promise<string> {
  const { paint } = context
  const rows = rowsOf(log, rollout)
  const labels = Object.entries(log.session.labels).map(([name, value]) => printable(`${name}=${value}`))
  const header = [
    `${paint('strong', 'session')} ${log.session.id}`,
    log.session.role,
    ...policyWords(log.session.policy),
    plural(log.calls.length, 'call'),
    log.closedAt === null ? 'open' : 'closed',
    ...labels,
  ].join(' · ')
  const sections = [
    header,
    conversation(log, {
      paint,
      texts: await knownTokenTexts(reader, log),
      masks: segmentMasks(log, rows),
      mostTokens: options.tokens,
      mostLines: options.lines,
    }),
    rowsText(rows, paint),
    ...(options.events && log.events.length > 0
      ? [`${paint('strong', 'events')}\n${eventLines(log.events, paint)}`]
      : []),
  ]
  return sections.filter((section) => section !== '').join('\n\n')
}
