/** Changes the files of an export, as a faulty exporter would have written them. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'
import { ByteWriter, parquetWrite } from 'hyparquet-writer'

/** The arrays of one row, all of one length; the other fields stay as they are. */
export interface Arrays {
  readonly tokens: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
}

/** Changes the arrays of rows; rows are in file order. A missing row is taken out of the file. */
export type Edit = (rows: readonly Arrays[]) => readonly (Arrays | undefined)[]

/** Rewrites the rows of an export directory. */
export async function mutateRows(directory: string, format: 'jsonl' | 'verl', edit: Edit): Promise<void> {
  await (format === 'jsonl' ? mutateJsonl(directory, edit) : mutateVerl(directory, edit))
}

interface JsonlLine {
  token_ids: readonly number[]
  loss_mask: readonly number[]
  logprobs: readonly number[]
}

async function mutateJsonl(directory: string, edit: Edit): Promise<void> {
  const file = join(directory, 'rows.jsonl')
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  const rows = lines.map((line) => JSON.parse(line) as JsonlLine)
  const edited = edit(rows.map((row) => ({ tokens: row.token_ids, mask: row.loss_mask, logprobs: row.logprobs })))
  const kept = rows.flatMap((row, index) => {
    const arrays = edited[index]
    if (arrays === undefined) return []
    const { tokens, mask, logprobs } = arrays
    return [`${JSON.stringify({ ...row, token_ids: tokens, loss_mask: mask, logprobs })}\n`]
  })
  await writeFile(file, kept.join(''))
}

async function mutateVerl(directory: string, edit: Edit): Promise<void> {
  const path = join(directory, 'rows.parquet')
  const file = await asyncBufferFromFile(path)
  const { schema } = await parquetMetadataAsync(file)
  const rows = (await parquetReadObjects({ file })) as Record<string, readonly number[]>[]
  const arrays = rows.map((row): Arrays => {
    const prompt = row['prompt_ids'] ?? []
    const padding = prompt.map(() => 0)
    return {
      tokens: [...prompt, ...(row['response_ids'] ?? [])],
      mask: [...padding, ...(row['response_mask'] ?? [])],
      logprobs: [...padding, ...(row['rollout_log_probs'] ?? [])],
    }
  })
  const edited = edit(arrays)
  const kept = rows.flatMap((row, index) => {
    const changed = edited[index]
    if (changed === undefined) return []
    const cut = row['prompt_ids']?.length ?? 0
    return [
      {
        ...row,
        prompt_ids: changed.tokens.slice(0, cut),
        response_ids: changed.tokens.slice(cut),
        response_mask: changed.mask.slice(cut),
        rollout_log_probs: changed.logprobs.slice(cut),
      } as Readonly<Record<string, unknown>>,
    ]
  })
  const names = Object.keys(rows[0] ?? {})
  const writer = new ByteWriter()
  await parquetWrite({
    writer,
    schema,
    columnData: names.map((name) => ({ name, data: kept.map((row) => row[name]) })),
  })
  await writeFile(path, writer.getBytes())
}
