import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'

/** What was found of an attempt: a JSON value, or files; null: nothing. */
export type Found =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'file'; readonly name: string; readonly data: Buffer }
  | { readonly kind: 'files'; readonly files: readonly (Extract<Found, { kind: 'file' }> | null)[] }
  | null

/** How what is not built in is measured: by a user's program or service. */
export const sidecarSchema = z.union([
  z.strictObject({ command: z.array(z.string()).min(1), seconds: z.number().positive().max(3600).default(120) }),
  z.strictObject({ url: z.url(), seconds: z.number().positive().max(3600).default(120) }),
])
export type Sidecar = z.infer<typeof sidecarSchema>

/** The program of a sidecar that is one; a service runs nothing here. */
export function programOf(sidecar: Sidecar | null): string | null {
  return sidecar !== null && 'command' in sidecar ? sidecar.command.join(' ') : null
}

/** What a sidecar is asked to measure. */
export interface Elsewhere {
  readonly id: string
  /** The format's name of the metric. */
  readonly func: string
  readonly options: Readonly<Record<string, unknown>>
  readonly result: Found
  readonly expected: Found
}

const answer = z.object({ score: z.number().min(0).max(1) })

/**
 * Has a metric measured by the user's own program or service, which gets
 * `{"task", "func", "options", "result", "expected"}` as JSON and answers `{"score": 0..1}`. A value stands as it is, a file
 * as `{"file": path}` for a program (stdin; it runs where the set lies), as `{"name", "base64"}` for a service (POST).
 * Throws `VERIFIER_FAILED` for everything else than a score: never a reward.
 */
export async function measureElsewhere(
  sidecar: Sidecar,
  { id: task, func, options, result, expected }: Elsewhere,
  o: { readonly source: string; readonly signal: AbortSignal },
): Promise<number> {
  const signal = AbortSignal.any([o.signal, AbortSignal.timeout(sidecar.seconds * 1000)])
  const failed = (what: string, cause?: unknown) =>
    new PaddockError('VERIFIER_FAILED', `The sidecar of ${func} ${what}`, cause === undefined ? {} : { cause })
  const read = (text: string): number => {
    try {
      return answer.parse(JSON.parse(text)).score
    } catch (cause) {
      throw failed(`answered ${JSON.stringify(text.slice(0, 200))} in place of {"score": 0..1}`, cause)
    }
  }
  if ('url' in sidecar) {
    const told = (found: Found) => written(found, (name, data) => ({ name, base64: data.toString('base64') }))
    const body = JSON.stringify({ task, func, options, result: told(result), expected: told(expected) })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(sidecar.url, { method: 'POST', headers, body, signal }).catch((cause: unknown) => {
      throw failed(`does not answer at ${sidecar.url}`, cause)
    })
    if (!response.ok) throw failed(`answered ${response.status}`)
    return read(await response.text())
  }
  const directory = await mkdtemp(join(tmpdir(), 'paddock-sidecar-'))
  try {
    const writes: Promise<void>[] = []
    const told = (side: string, found: Found) =>
      written(found, (name, data) => {
        const path = join(directory, `${side}-${writes.length}-${basename(name)}`)
        writes.push(writeFile(path, data))
        return { file: path }
      })
    const request = { task, func, options, result: told('result', result), expected: told('expected', expected) }
    await Promise.all(writes)
    return read(await run(sidecar.command, JSON.stringify(request), dirname(o.source), signal, failed))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function written(found: Found, file: (name: string, data: Buffer) => unknown): unknown {
  if (found === null) return null
  if (found.kind === 'value') return found.value
  if (found.kind === 'file') return file(found.name, found.data)
  return found.files.map((one) => (one === null ? null : file(one.name, one.data)))
}

async function run(
  [program = '', ...args]: readonly string[],
  input: string,
  cwd: string,
  signal: AbortSignal,
  failed: (what: string, cause?: unknown) => PaddockError,
): Promise<string> {
  const child = spawn(program, args, { cwd, signal, killSignal: 'SIGKILL', stdio: ['pipe', 'pipe', 'pipe'] })
  const out: Buffer[] = []
  const words: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => words.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const ended = Promise.withResolvers<number | null>()
  child.on('error', (cause) => ended.reject(failed(`${program} did not run to its end: ${cause.message}`, cause)))
  child.on('close', (code) => ended.resolve(code))
  const code = await ended.promise
  if (code !== 0)
    throw failed(`ended with ${String(code)}: ${Buffer.concat(words).toString('utf8').trim().slice(-300)}`)
  return Buffer.concat(out).toString('utf8')
}
