import type { ArchiveEntry, Box, ExecResult } from '../../sandbox/index.ts'
import { isPaddockError } from '../../core/index.ts'
import { readRewardFiles } from './reward-file.ts'

/** A command that scores what is in a fresh box. */
export interface CheckSpec {
  readonly command: readonly string[]
  /** Absolute. Emptied before the command, readable by `user` alone, read after the command and all it started are gone. */
  readonly rewardDirectory: string
  readonly timeoutMs: number
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Null: the box's own user. */
  readonly user: string | null
  readonly signal: AbortSignal
}

/**
 * What came of a check. `broken`: the verifier itself gave no reward (crash, time out, unreadable file): `unscorable`.
 * `fault`: the box or the daemon failed: `infra_error`. Neither is ever a 0.
 * `late`: it had no time left, by its own limit or by one within it (exit code 124, as of timeout(1)).
 */
export type CheckOutcome =
  | {
      readonly kind: 'measured'
      readonly reward: number
      readonly components: Readonly<Record<string, number>>
      readonly output: string
    }
  | { readonly kind: 'broken'; readonly reason: string; readonly output: string; readonly late?: boolean }
  | { readonly kind: 'fault'; readonly reason: string; readonly output: string }

const rewardBytes = 1024 * 1024
/** Of timeout(1). */
const lateCode = 124

/**
 * Runs a check in a fresh box and reads its reward. The agent has never run in that box; commands of the agent that
 * the check starts as another user cannot write the reward directory, and none of them lives when it is read.
 * Rejects only with the signal's reason.
 */
export async function runCheck(box: Box, spec: CheckSpec): Promise<CheckOutcome> {
  try {
    const prepared = await prepare(box, spec)
    if (prepared !== null) return prepared
    const result = await box.exec(
      {
        command: spec.command,
        timeoutMs: spec.timeoutMs,
        eventRole: 'verifier',
        ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
        ...(spec.env === undefined ? {} : { env: spec.env }),
        ...(spec.user === null ? {} : { user: spec.user }),
      },
      { signal: spec.signal },
    )
    return await read(box, spec, result)
  } catch (error) {
    if (spec.signal.aborted) throw spec.signal.reason
    if (isPaddockError(error) && error.family === 'infra') {
      return { kind: 'fault', reason: `${error.code}: ${error.message}`, output: '' }
    }
    return { kind: 'broken', reason: error instanceof Error ? error.message : String(error), output: '' }
  }
}

async function prepare(box: Box, spec: CheckSpec): Promise<CheckOutcome | null> {
  const script = 'rm -rf -- "$1" && mkdir -p -- "$1" && chmod 700 -- "$1" && { [ -z "$2" ] || chown -- "$2" "$1"; }'
  const made = await box.exec(
    { command: ['/bin/sh', '-c', script, 'sh', spec.rewardDirectory, spec.user ?? ''], cwd: '/', timeoutMs: 30_000 },
    { signal: spec.signal },
  )
  if (made.kind === 'exited' && made.code === 0) return null
  const output = outputOf(made)
  if (made.kind === 'box_dead') return { kind: 'fault', reason: `The box died: ${made.why.detail}`, output }
  return { kind: 'fault', reason: `The directory ${spec.rewardDirectory} could not be prepared.`, output }
}

async function read(box: Box, spec: CheckSpec, result: ExecResult): Promise<CheckOutcome> {
  const output = outputOf(result)
  switch (result.kind) {
    case 'box_dead':
      return { kind: 'fault', reason: `The verifier's box died: ${result.why.detail}`, output }
    case 'timed_out':
      return { kind: 'broken', reason: `The verifier did not end within ${spec.timeoutMs} ms.`, output, late: true }
    case 'oom':
      return { kind: 'broken', reason: 'The verifier ran out of memory.', output }
    case 'signaled':
      return { kind: 'broken', reason: `The verifier was ended by ${result.signal}.`, output }
    case 'exited': {
      // A non-zero exit with a reward is a result: test runners exit 1 when a test fails.
      const written = await box.getFiles(spec.rewardDirectory, { maxBytes: rewardBytes, maxEntries: 1000 })
      const reading = readRewardFiles({
        json: textOf(written.entries, 'reward.json'),
        text: textOf(written.entries, 'reward.txt'),
      })
      if (!reading.ok) {
        const reason = `${reading.reason} (exit code ${result.code})`
        return { kind: 'broken', reason, output, ...(result.code === lateCode ? { late: true } : {}) }
      }
      return { kind: 'measured', reward: reading.reward, components: reading.components, output }
    }
  }
}

function textOf(entries: readonly ArchiveEntry[], path: string): string | null {
  const entry = entries.find((e) => e.type === 'file' && e.path === path)
  return entry?.type === 'file' ? new TextDecoder().decode(entry.data) : null
}

function outputOf(result: ExecResult): string {
  const decoder = new TextDecoder()
  const parts = [decoder.decode(result.stdout), decoder.decode(result.stderr)].map((text) => text.trimEnd())
  // Honest tests leave servers running, so this is for a reader and no proof of anything.
  if (result.killed > 0) parts.push(`killed before the reward was read: ${result.killed} left-over processes`)
  return parts.filter((text) => text !== '').join('\n')
}
