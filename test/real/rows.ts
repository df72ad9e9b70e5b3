/** Rows of real runs, before a judge that shares no code with us. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { paddock } from '../cli/paddock.ts'
import { cache, type RealModel, weights } from './vllm.ts'

/** How far recorded logprobs of one file are from recomputed ones, in nats. */
export interface Judged {
  readonly rows: number
  readonly tokens: number
  readonly max: number
  readonly mean: number
  readonly p99: number
}

/** A line of a `jsonl` export, as far as it is changed or counted here. */
export interface Row {
  readonly token_ids: readonly number[]
  readonly loss_mask: readonly number[]
  readonly logprobs: readonly (number | null)[]
  readonly logprob_kind: string
  readonly message_spans: readonly {
    readonly start: number
    readonly end: number
    readonly role: string | null
    readonly part: string
  }[]
  /** The pictures of the conversation, in order: a path under the export. Absent where there are none. */
  readonly media?: readonly { readonly path: string; readonly sha256: string; readonly mime: string }[]
}

/** Exports everything of a data directory. Throws what the command printed. */
export async function exportRows(data: string, out: string): Promise<readonly Row[]> {
  const kept = ['--include-null-verdicts', '--include-unfinished', '--spans']
  const done = await paddock(['export', '--data', data, '--format', 'jsonl', '--out', out, ...kept])
  if (done.code !== 0) throw new Error(done.out + done.err)
  const lines = (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Row)
}

/** Judges each set of rows by a forward pass of the model: one of the lane, or the directory of another. */
export async function judge(
  directory: string,
  model: RealModel | { readonly at: string },
  sets: Readonly<Record<string, readonly Row[]>>,
): Promise<Readonly<Record<string, Judged>>> {
  const names = Object.keys(sets)
  const files = names.map((name) => join(directory, `${name}.rows.jsonl`))
  for (const [at, rows] of Object.values(sets).entries()) {
    await writeFile(files[at] ?? '', rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  }
  const program = join(import.meta.dirname, 'forward.py')
  const child = spawn(
    join(cache, 'venv/bin/python'),
    [program, typeof model === 'string' ? weights(model) : model.at, ...files],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const said: string[] = []
  let complaint = ''
  createInterface({ input: child.stdout }).on('line', (line) => said.push(line))
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`forward.py ended with ${String(code)}: ${complaint}`)
  return Object.fromEntries(names.map((name, at) => [name, JSON.parse(said[at] ?? '') as Judged]))
}

/** Rows whose ids stand one place too early from the first trained one on. */
export const shifted = (rows: readonly Row[]): readonly Row[] =>
  rows.map((row) => {
    const at = row.loss_mask.indexOf(1)
    return {
      ...row,
      token_ids: row.token_ids.map((id, place) => (place >= at ? (row.token_ids[place + 1] ?? id) : id)),
    }
  })

/** Rows whose prompt lacks what the engine saw: its middle token is another one. */
export const miscontexted = (rows: readonly Row[]): readonly Row[] =>
  rows.map((row) => {
    const wrong = Math.floor(row.loss_mask.indexOf(1) / 2)
    return { ...row, token_ids: row.token_ids.map((id, place) => (place === wrong ? id + 1 : id)) }
  })

/** Rows that call their logprobs what they are not. */
export const miscalled = (rows: readonly Row[]): readonly Row[] =>
  rows.map((row) => ({ ...row, logprob_kind: row.logprob_kind === 'raw' ? 'processed' : 'raw' }))
