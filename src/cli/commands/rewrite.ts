import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { type Id, PaddockError } from '../../core/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import { type Cli, type CommandContext, wholeNumber } from '../cli.ts'
import { environmentsOf } from '../environments.ts'
import { type ExitCode, exitCode } from '../exit.ts'
import { plural, shortId } from '../present/units.ts'
import { resolveKind } from '../resolve.ts'
import { sandboxOf } from '../sandbox.ts'
import { openForReading } from '../store.ts'

interface RewriteOptions {
  readonly with: string
  readonly name: string
  readonly env?: string
  readonly parallel: number
  readonly pairs?: string
}

/** `paddock rewrite`: new rollouts of recorded ones, with other messages in the place of some. */
export function addRewrite(program: Command, cli: Cli): void {
  program
    .command('rewrite')
    .description('make new trajectories of recorded ones: a wrong step corrected, a failed call taken out')
    .argument('[rollout]', 'the rollout that is rewritten, where the file does not say')
    .requiredOption('--with <file>', 'JSON or JSON lines of rewrites: {rollout, by, edits: [{from, to, messages}]}')
    .option('--name <text>', 'name of the run', 'rewrite')
    .option('--env <name>', 'environment whose verifier takes answers, where it is the path of a plugin')
    .option('--parallel <n>', 'verifications at once', wholeNumber(1), 2)
    .option('--pairs <file>', 'writes each rewrite beside what it corrects as a preference pair for DPO, as JSON lines')
    .addHelpText(
      'after',
      `
Example:
  $ cat fix.json
  {"by": "teacher-70b", "reason": "first wrong step", "edits": [{"from": 4, "to": null, "messages": [{"role": "assistant", "content": "42"}]}]}
  $ paddock rewrite 5f3a9c21 --with fix.json

Messages are counted from 0 in the main conversation as it ended. The original stays as it is. No token of a rewrite was sampled: formats for
RL leave it out, formats of messages take it. \`answer\` beside \`edits\` is verified by the task's own verifier.`,
    )
    .action(async (rollout: string | undefined, options: RewriteOptions, command: Command) =>
      cli.run(command, {}, async (context) => rewrite(context, rollout, options)),
    )
}

async function rewrite(
  context: CommandContext,
  rollout: string | undefined,
  options: RewriteOptions,
): Promise<ExitCode> {
  const { rewriteRollouts, rewriteSchema } = await import('../../rollout/index.ts')
  const { chatRequestOf } = await import('../../proxy/index.ts')
  const { openStore } = await import('../../trajectory/index.ts')
  const { io, loaded } = context
  const file = resolve(io.cwd, options.with)
  const lines = valuesOf(await readFile(file, 'utf8'), file)
  const pairsFile = options.pairs === undefined ? null : resolve(io.cwd, options.pairs)
  if (pairsFile !== null && existsSync(pairsFile)) {
    throw new PaddockError('USAGE', `${pairsFile} is there already`, { fix: 'Name another file for --pairs.' })
  }
  // A directory that is not there is a mistake to be told, not one to be made.
  await (await openForReading(context)).close()
  const { directory, synchronous, catalogue } = loaded.config.store
  await using store = await openStore(directory, { synchronous, catalogue, work: 'rewrite' })
  const rewrites = []
  for (const [nth, value] of lines.entries()) {
    const place = `${basename(file)}#${nth + 1}`
    const parsed = rewriteSchema.safeParse(value)
    if (!parsed.success) throw new PaddockError('REWRITE_REFUSED', `${place}: ${z.prettifyError(parsed.error)}`)
    const named = parsed.data.rollout ?? rollout
    if (named === undefined)
      throw new PaddockError('USAGE', `${place} names no rollout, and neither does the command line`, {
        fix: 'Add `"rollout": "<id>"` to it, or write `paddock rewrite <rollout> …`.',
      })
    const id = await resolveKind(store, 'rollout', named)
    rewrites.push({ rolloutId: id satisfies Id, rewrite: parsed.data, place })
  }
  const { roleEngine } = await import('../role-engine.ts')
  await using judge = roleEngine('judge', loaded.config, { store })
  const environments = environmentsOf(loaded, { also: options.env, cwd: io.cwd })
  environments.catch(() => undefined)
  let sandbox: Promise<SandboxProvider> | undefined
  try {
    const report = await rewriteRollouts({
      store,
      rewrites,
      name: options.name,
      readRequest: chatRequestOf,
      environment: async (name) => (await environments).get(name),
      sandbox: () => (sandbox ??= sandboxOf(loaded.config)),
      judge: judge.find,
      parallel: options.parallel,
      signal: io.signal,
    })
    const { pairs, ...told } = report
    if (pairsFile !== null) await writeFile(pairsFile, pairs.join(''), { flag: 'wx' })
    context.result({ ...told, pairs: pairsFile === null ? null : pairs.length }, () => {
      const what = `${plural(report.rewrites, 'rollout')} of ${plural(report.groups, 'task')}, ${report.withVerdict} with a verdict`
      const written = pairsFile === null ? '' : `; ${plural(pairs.length, 'pair')} in ${options.pairs}`
      return `run ${shortId(report.runId)}  ${report.taken === 0 ? 'was made before: ' : ''}${what}${written}`
    })
    return exitCode.ok
  } finally {
    await (await sandbox)?.close()
  }
}

/** One JSON value, an array of them, or a value a line. */
function valuesOf(text: string, file: string): readonly unknown[] {
  const refuse = (at: string, cause: unknown): never => {
    throw new PaddockError('REWRITE_REFUSED', `${at} is no JSON: ${String(cause)}`, { cause })
  }
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : [value]
  } catch (whole) {
    if (!/\.(jsonl|ndjson)$/.test(file)) return refuse(file, whole)
  }
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      return [JSON.parse(line) as unknown]
    } catch (cause) {
      return refuse(`${basename(file)}:${i + 1}`, cause)
    }
  })
}
