import type { EventBody } from '../../core/index.ts'
import type { ExecResult, ExecSpec } from '../contract/index.ts'

const tailBytes = 4096

/** The event of one command, or null for a command that nobody asked to be told of. Output is cut to its tail. */
export function execEvent(command: ExecSpec, result: ExecResult): EventBody | null {
  if (command.eventRole === undefined) return null
  const line = typeof command.command === 'string' ? command.command : command.command.join(' ')
  return {
    kind: 'exec',
    role: command.eventRole,
    command: command.eventCommand ?? line,
    outcome: result.kind,
    exitCode: result.kind === 'exited' ? result.code : null,
    signal: result.kind === 'signaled' ? result.signal : null,
    durationMs: result.durationMs,
    stdout: tail(result.stdout),
    stderr: tail(result.stderr),
    truncatedBytes: result.truncated.stdout + result.truncated.stderr,
    callId: null,
  }
}

function tail(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(Math.max(0, bytes.byteLength - tailBytes))).toString('utf8')
}
