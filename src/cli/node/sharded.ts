/** A node of several processes: the parent, which starts them and passes on what they say. */
import { type ChildProcess, fork } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PaddockError } from '../../core/index.ts'
import { defaultLimits } from '../../rollout/index.ts'
import type { CommandContext } from '../cli.ts'
import { exitCode, type ExitCode } from '../exit.ts'
import { plural } from '../present/units.ts'
import { ShardSet } from './shard-set.ts'
import { shareOf } from './share.ts'

export interface Sharded {
  readonly shards: number
  readonly name: string
  /** Of all together; undefined: what `run.limits` admits. */
  readonly places: number | undefined
}

/** Runs the processes of a node until Ctrl-C, or until one of them fails. Throws `USAGE`, `NODE_UNFIT`. */
export async function runSharded(context: CommandContext, { shards, name, places: given }: Sharded): Promise<ExitCode> {
  const { io, json, loaded } = context
  const { config } = loaded
  const places = given ?? config.run.limits.agent ?? defaultLimits().agent
  if (places < shards) {
    throw new PaddockError('USAGE', `--shards ${shards} has more processes than the node has places, ${places}`, {
      fix: 'Give more --places, or fewer --shards.',
    })
  }
  await requireNothingLeft(config.store.directory, shards)
  const [program = '', ...args] = process.argv.slice(1)
  const start = (index: number): ChildProcess => {
    const number = index + 1
    const data = shardDirectory(config.store.directory, number)
    const own = ['--shard', `${number}/${shards}`, '--name', `${name}.${number}`, '--data', data]
    own.push('--places', String(shareOf(places, index, shards)))
    // A process group of its own: Ctrl-C in the terminal is for us, and we end it.
    const child = fork(program, [...args, ...own], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true })
    lines(child.stdout, (line) => io.out(json ? numbered(line, number) : `${number}  ${line}`))
    lines(child.stderr, (line) => io.err(`${number}  ${line}`))
    return child
  }
  const code = await ShardSet.run({
    host: config.proxy.host,
    port: 0,
    shards,
    start,
    again: (index, signal) => {
      if (json) io.out(JSON.stringify({ type: 'shard', shard: index + 1, detail: signal }))
      else io.err(`Shard ${index + 1} was ended by ${signal}: starting it again …`)
    },
    ready: (origin) => {
      if (json) io.out(JSON.stringify({ type: 'shards', name, shards, inference: origin }))
      else io.out(`${context.paint('strong', name)} has ${plural(shards, 'shard')} behind ${origin}`)
    },
    signal: io.signal,
  })
  return isExitCode(code) ? code : exitCode.infra
}

/** Data directory of one of the processes, from 1. */
function shardDirectory(directory: string, number: number): string {
  return join(directory, 'shards', String(number))
}

/**
 * A node that had more processes, or one, may have left jobs where none of these will look. `shards`: 1 for a node without any. Throws
 * `NODE_UNFIT`.
 */
export async function requireNothingLeft(directory: string, shards: number): Promise<void> {
  const names = await readdir(join(directory, 'shards')).catch(() => [])
  const numbers = names.map(Number).filter((number) => number > (shards === 1 ? 0 : shards))
  const unused = numbers.map((number) => ({ at: shardDirectory(directory, number), as: Math.max(...numbers) }))
  if (shards > 1) unused.unshift({ at: directory, as: 1 })
  for (const { at, as } of unused) {
    const held = await readdir(join(at, 'node-jobs')).catch(() => [])
    const count = held.filter((name) => name.endsWith('.json')).length
    if (count === 0) continue
    throw new PaddockError(
      'NODE_UNFIT',
      `${plural(count, 'job')} of an earlier start stand in ${at}, which no process of this one opens`,
      {
        fix: `Start with --shards ${as} until they are handed in or given back.`,
      },
    )
  }
}

function lines(stream: NodeJS.ReadableStream | null, tell: (line: string) => void): void {
  if (stream !== null) createInterface({ input: stream }).on('line', tell)
}

function numbered(line: string, shard: number): string {
  const said: unknown = JSON.parse(line)
  return JSON.stringify({ ...(said as object), shard })
}

function isExitCode(code: number): code is ExitCode {
  return Object.values<number>(exitCode).includes(code)
}
