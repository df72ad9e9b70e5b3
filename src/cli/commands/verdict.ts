import { type Command, InvalidArgumentError } from 'commander'
import { PaddockError, type Verdict } from '../../core/index.ts'
import type { LateVerdict } from '../../rollout/index.ts'
import type { Cli, CommandContext } from '../cli.ts'
import { ownerOf } from '../find-owner.ts'
import { exitCode } from '../exit.ts'
import { shortId } from '../present/units.ts'
import { resolveKind } from '../resolve.ts'
import { openForReading } from '../store.ts'

interface VerdictOptions {
  readonly source: string
  readonly reward?: number
  readonly none?: string
  readonly policy?: Readonly<Record<string, number>>
  readonly component?: Readonly<Record<string, number>>
  readonly step?: Readonly<Record<string, number>>
  readonly evidence?: string
}

/** `paddock verdict`: a late reward or another label of an ended rollout, beside a live owner too. */
export function addVerdict(program: Command, cli: Cli): void {
  program
    .command('verdict')
    .description('give a recorded rollout a late reward, or another label; the earlier verdict stays on record')
    .argument('<rollout>', 'id of a rollout, or its end')
    .requiredOption('--source <name>', 'who says so; becomes the verifier late/<name>')
    .option('--reward <n>', 'the reward; without it the one in force stays', number)
    .option('--none <reason>', 'no reward can be given, and why')
    .option('--policy <name=n>', 'the reward of one of several policies, where it is another one, several times', pair)
    .option('--component <name=n>', 'a named part of the reward, several times', pair)
    .option('--step <call=n>', 'the value of one call, several times', pair)
    .option('--evidence <text>', 'what a reader should know')
    .addHelpText('after', '\nExample:\n  $ paddock verdict 5f3a9c21 --source review --reward 0.5 --component style=0.2')
    .action(async (text: string, options: VerdictOptions, command: Command) =>
      cli.run(command, {}, async (context) => {
        if (options.reward !== undefined && options.none !== undefined) {
          throw new PaddockError('USAGE', '--reward and --none exclude each other', {
            fix: 'Leave one of them out.',
          })
        }
        const verdict = await append(context, await rolloutOf(context, text), givenBy(options))
        context.result(verdict, () => {
          const number =
            verdict.reward === null ? `${verdict.status}: ${verdict.reason}` : `${verdict.status} ${verdict.reward}`
          return `${shortId(verdict.rolloutId)}  ${number}  by ${verdict.verifier.id}`
        })
        return exitCode.ok
      }),
    )
}

function givenBy({ source, reward, none, policy, component, step, evidence }: VerdictOptions): LateVerdict {
  return {
    source,
    ...(none === undefined ? { reward } : { reward: null, reason: none }),
    ...(policy === undefined ? {} : { byPolicy: policy }),
    components: component,
    steps: Object.entries(step ?? {}).map(([callId, value]) => ({ callId, value })),
    evidence,
  }
}

async function rolloutOf(context: CommandContext, text: string): Promise<string> {
  const reader = await openForReading(context)
  try {
    return await resolveKind(reader, 'rollout', text)
  } finally {
    await reader.close()
  }
}

/** Through the process that owns the data directory, where there is one. */
async function append(context: CommandContext, rolloutId: string, given: LateVerdict): Promise<Verdict> {
  const { io, loaded } = context
  const { store } = loaded.config
  const owner = await ownerOf(context)
  if (owner === null) {
    const { openStore } = await import('../../trajectory/index.ts')
    const { appendLate } = await import('../../rollout/index.ts')
    const { machineToken } = await import('../../access/index.ts')
    await using opened = await openStore(store.directory, {
      synchronous: store.synchronous,
      catalogue: store.catalogue,
    })
    // Whoever has the data directory has its control token.
    return await appendLate(opened, rolloutId, { ...given, token: machineToken })
  }
  const answer = await fetch(`${owner.origin}/rollouts/${rolloutId}/verdicts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'application/json' },
    // Names as the route takes them.
    body: JSON.stringify(wireOf(given)),
    signal: io.signal,
  })
  const body: unknown = await answer.json()
  if (!answer.ok) {
    const { ownerError } = await import('../at-owner.ts')
    throw ownerError(body, owner, 'refuses the verdict')
  }
  // The owner is this same program.
  return (body as { readonly verdict: Verdict }).verdict
}

function wireOf({ byPolicy, steps = [], ...given }: LateVerdict) {
  const values = steps.map(({ callId, value }) => ({ call_id: callId, value }))
  return { ...given, steps: values, ...(byPolicy === undefined ? {} : { by_policy: byPolicy }) }
}

function pair(text: string, before: Readonly<Record<string, number>> = {}): Readonly<Record<string, number>> {
  const at = text.lastIndexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write <name>=<number>.')
  return { ...before, [text.slice(0, at)]: number(text.slice(at + 1)) }
}

function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number.')
  return value
}
