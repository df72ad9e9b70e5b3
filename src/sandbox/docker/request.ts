import { PaddockError } from '../../core/index.ts'
import type { ExecSpec } from '../contract/index.ts'
import type { ExecRequest, TerminalSize } from './frames.ts'

/** A command with its defaults, as the supervisor takes it. Throws `BOX_COMMAND_REFUSED` for what cannot be one. */
export function toRequest(spec: ExecSpec, workdir: string, terminal: TerminalSize | null = null): ExecRequest {
  const shell = typeof spec.command === 'string'
  const argv = typeof spec.command === 'string' ? [spec.command] : spec.command
  const env = spec.env ?? {}
  const texts = [...argv, ...Object.keys(env), ...Object.values(env), spec.cwd ?? '', spec.user ?? '']
  if (argv.length === 0 || texts.some((text) => text.includes('\0')) || Object.keys(env).some((n) => /^$|=/.test(n))) {
    throw new PaddockError('BOX_COMMAND_REFUSED', 'The command is empty, or a part of it holds a NUL byte.', {
      fix: 'Pass at least a program name, no NUL bytes and environment names without "=".',
    })
  }
  return {
    timeoutMs: milliseconds(spec.timeoutMs ?? 60_000),
    graceMs: milliseconds(spec.graceMs ?? 2000),
    maxOutputBytes: spec.maxOutputBytes ?? (spec.output === 'told' ? Number.MAX_SAFE_INTEGER : 10 << 20),
    keepBackground: spec.background === 'keep',
    shell,
    hasStdin: spec.stdin !== undefined || terminal !== null,
    user: spec.user ?? '',
    cwd: spec.cwd ?? workdir,
    argv,
    env,
    terminal,
  }
}

function milliseconds(value: number): number {
  return Math.max(0, Math.min(Math.round(value), 2 ** 32 - 1))
}

/** Input of any form as chunks. */
export async function* pieces(stdin: Uint8Array | string | AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  if (typeof stdin === 'string') yield Buffer.from(stdin, 'utf8')
  else if (stdin instanceof Uint8Array) yield stdin
  else yield* stdin
}
