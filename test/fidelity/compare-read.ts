/**
 * What the comparer reads: the engine's journal and the exported files. Nothing here knows Paddock's code; both shapes
 * are read from their published descriptions (engine/README.md, docs/reference/export-formats.md).
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'

/** One answer that the engine sampled. */
export interface TrueChoice {
  /** Position in the journal, for reports and stable order. */
  readonly number: number
  readonly requestId: string
  /** `x-request-id` that the engine was called with, null without one. */
  readonly callId: string | null
  readonly index: number
  readonly prompt: readonly number[]
  readonly tokens: readonly number[]
  /** float64, as the model has them. */
  readonly logprobs: readonly number[]
  /** False where the connection ended before the answer had left: the recorder may never have seen these tokens. */
  readonly delivered: boolean
}

/** A sampled range that a row itself declares. */
export interface DeclaredRange {
  readonly callId: string | null
  readonly start: number
  readonly end: number
  readonly choice: number | null
}

/** One exported row, positions counted from its first prompt token. */
export interface ExportedRow {
  readonly rowId: string
  readonly rolloutId: string
  readonly tokens: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
  readonly declared: readonly DeclaredRange[]
}

/** The counts of the manifest that the comparer checks. */
export interface ManifestCounts {
  readonly sampled: number
  readonly trainable: number
  readonly masked: number
  readonly notExported: number
  readonly rows: number
  /** Forks that the recorder declares because equal answers could not be told apart. */
  readonly ambiguous: number
}

/** Reads a journal (JSON lines). Only finished generations count; an unfinished last line is ignored. */
export async function readJournal(file: string): Promise<readonly TrueChoice[]> {
  const lines = parseLines(await readFile(file, 'utf8'))
  const undelivered = new Set(
    lines.flatMap((line) =>
      line['kind'] === 'delivery' && line['ended'] !== 'finished' ? [text(line, 'requestId')] : [],
    ),
  )
  const choices: TrueChoice[] = []
  for (const line of lines) {
    if (line['kind'] !== 'generation') continue
    const requestId = text(line, 'requestId')
    const headers = object(line['headers'])
    const callId = headers['x-request-id']
    for (const choice of objects(line['choices'])) {
      choices.push({
        number: choices.length,
        requestId,
        callId: typeof callId === 'string' ? callId : null,
        index: Number(choice['index']),
        prompt: numbers(line['promptTokenIds'], requestId),
        tokens: numbers(choice['tokenIds'], requestId),
        logprobs: numbers(choice['logprobs'], requestId),
        delivered: !undelivered.has(requestId),
      })
    }
  }
  return choices
}

/** Reads the rows of an export directory: `rows.jsonl` or `rows.parquet`. */
export async function readRows(directory: string): Promise<readonly ExportedRow[]> {
  const names = await readdir(directory)
  if (names.includes('rows.jsonl')) {
    return parseLines(await readFile(join(directory, 'rows.jsonl'), 'utf8')).map(jsonlRow)
  }
  if (names.includes('rows.parquet')) {
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(directory, 'rows.parquet')) })
    return rows.map(verlRow)
  }
  throw new Error(`${directory} holds neither rows.jsonl nor rows.parquet`)
}

/** Reads the counts of `manifest.json`. */
export async function readManifest(directory: string): Promise<ManifestCounts> {
  const manifest = object(JSON.parse(await readFile(join(directory, 'manifest.json'), 'utf8')))
  const tokens = object(manifest['tokens'])
  const total = (value: unknown): number => Object.values(object(value)).reduce<number>((a, b) => a + Number(b), 0)
  return {
    sampled: Number(tokens['sampled']),
    trainable: Number(tokens['trainable']),
    masked: total(tokens['masked']),
    notExported: total(tokens['not_exported']),
    rows: Number(object(manifest['rows'])['count']),
    ambiguous: Number(object(object(manifest['drift'])['forks'])['ambiguous'] ?? 0),
  }
}

function jsonlRow(line: Readonly<Record<string, unknown>>): ExportedRow {
  const rowId = text(line, 'row_id')
  return {
    rowId,
    rolloutId: text(line, 'rollout_id'),
    tokens: numbers(line['token_ids'], rowId),
    mask: numbers(line['loss_mask'], rowId),
    logprobs: numbers(line['logprobs'], rowId),
    declared: objects(line['segments'])
      .filter((segment) => segment['origin'] === 'sampled')
      .map((segment) => rangeOf(segment, 0)),
  }
}

function verlRow(row: Readonly<Record<string, unknown>>): ExportedRow {
  const rowId = text(row, 'row_id')
  const prompt = numbers(row['prompt_ids'], rowId)
  const padding = prompt.map(() => 0)
  const extra = object(JSON.parse(text(row, 'extra_info')))
  return {
    rowId,
    rolloutId: text(row, 'rollout_id'),
    tokens: [...prompt, ...numbers(row['response_ids'], rowId)],
    mask: [...padding, ...numbers(row['response_mask'], rowId)],
    logprobs: [...padding, ...numbers(row['rollout_log_probs'], rowId)],
    declared: objects(extra['calls']).map((call) => rangeOf(call, prompt.length)),
  }
}

function rangeOf(range: Readonly<Record<string, unknown>>, offset: number): DeclaredRange {
  const { call_id: callId, choice } = range
  return {
    callId: typeof callId === 'string' ? callId : null,
    start: Number(range['start']) + offset,
    end: Number(range['end']) + offset,
    choice: typeof choice === 'number' ? choice : null,
  }
}

function parseLines(content: string): readonly Readonly<Record<string, unknown>>[] {
  const lines = content.split('\n')
  // What a killed process left of its last line is no line.
  if (lines.at(-1) !== '') lines.pop()
  return lines.filter((line) => line !== '').map((line) => object(JSON.parse(line)))
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new Error(`expected an object, found ${typeof value}`)
  return value as Readonly<Record<string, unknown>>
}

function objects(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!Array.isArray(value)) throw new Error(`expected a list, found ${typeof value}`)
  return value.map(object)
}

function text(holder: Readonly<Record<string, unknown>>, name: string): string {
  const value = holder[name]
  if (typeof value !== 'string') throw new Error(`expected text in ${name}, found ${typeof value}`)
  return value
}

function numbers(value: unknown, where: string): readonly number[] {
  if (!Array.isArray(value)) throw new Error(`${where}: expected a list of numbers`)
  return value.map((entry) => (typeof entry === 'number' ? entry : Number.NaN))
}
