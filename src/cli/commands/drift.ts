import type { Command } from 'commander'
import type { Id } from '../../core/index.ts'
import { knownTokenTexts } from '../../read/index.ts'
import type { SessionLog, SessionRecord, StoreReader } from '../../trajectory/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { causesOf, driftText, driftEntries } from '../present/drift.ts'
import { plural } from '../present/units.ts'
import { type Found, resolveId } from '../resolve.ts'
import { openForReading } from '../store.ts'

/** `paddock drift`: where prompts should have extended what was sampled before, and did not, and why. */
export function addDrift(program: Command, cli: Cli): void {
  program
    .command('drift')
    .description('print the drift report: prompts that did not extend an earlier answer, each with its cause')
    .argument('<id>', 'id of a run, group, rollout or session; the short form that tables print will do')
    .addHelpText(
      'after',
      `
Example:
  $ paddock drift 5f3a9c21

Each entry costs one more row in an export. \`before\` is what both sides have in common, \`recorded\` what was sampled,
\`prompt\` what the engine was given instead. The strategy \`splice\` avoids most causes.`,
    )
    .action(async (id: string, _options: unknown, command: Command) =>
      cli.run(command, {}, (context) => drift(context, id)),
    )
}

async function drift(context: CommandContext, text: string): Promise<ExitCode> {
  await using reader = await openForReading(context)
  const logs: SessionLog[] = []
  for (const id of await sessionsOf(reader, await resolveId(reader, text))) {
    logs.push(await reader.recorder.session(id, { bodies: [] }))
  }
  const entries = logs.flatMap(driftEntries)
  const calls = logs.reduce((sum, log) => sum + log.calls.length, 0)
  const causes = causesOf(entries)
  const texts: string[] = []
  for (const log of logs) {
    const own = driftEntries(log)
    if (own.length > 0) texts.push(driftText(own, await knownTokenTexts(reader, log), context.paint))
  }
  context.result({ calls, causes, forks: entries }, () =>
    [
      `${plural(calls, 'call')}, ${plural(entries.length, 'fork')}${Object.entries(causes)
        .map(([cause, count], index) => `${index === 0 ? ': ' : ', '}${cause} ${count}`)
        .join('')}`,
      ...texts,
    ].join('\n'),
  )
  return exitCode.ok
}

async function sessionsOf({ catalogue, recorder }: StoreReader, found: Found): Promise<readonly Id[]> {
  if (found.kind === 'session') return [found.id]
  const rollouts =
    found.kind === 'rollout'
      ? [found.id]
      : (await catalogue.rollouts(found.kind === 'run' ? { runId: found.id } : { groupId: found.id })).map(
          ({ id }) => id,
        )
  const sessions: SessionRecord[] = []
  for (const rolloutId of rollouts) sessions.push(...(await recorder.sessions({ rolloutId })))
  return sessions.map(({ id }) => id)
}
