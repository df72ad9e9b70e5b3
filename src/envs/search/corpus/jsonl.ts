import { open } from 'node:fs/promises'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Document } from './document.ts'

const id = z.union([z.string().min(1), z.int()]).transform(String)
/** BEIR's `corpus.jsonl`, and the same with `id`. */
const titled = z.looseObject({ title: z.string().default(''), text: z.string() })
/** Search-R1's corpora: the title in quotes on the first line of `contents`. */
const contents = z.looseObject({ contents: z.string() })
const anyId = z.union([z.looseObject({ id }), z.looseObject({ _id: id }).transform((row) => ({ id: row._id }))])

/** Reads the passages of a JSON-lines file, in order. Throws `TASK_INVALID` with file and line. */
export async function* readJsonLines(path: string): AsyncGenerator<Document> {
  await using file = await open(path).catch((cause: unknown) => {
    throw new PaddockError('TASK_INVALID', `The corpus ${path} cannot be read`, {
      cause,
      data: { file: path },
      fix: 'Check corpus.path in search.toml.',
    })
  })
  let line = 0
  for await (const text of file.readLines()) {
    line += 1
    if (text.trim() !== '') yield parsePassage(text, `${path}:${line}`)
  }
}

/** Parses one line. `place` names it in the error. */
export function parsePassage(line: string, place: string): Document {
  let row: unknown
  try {
    row = JSON.parse(line)
  } catch (cause) {
    throw invalid(place, 'is not JSON', cause)
  }
  const named = anyId.safeParse(row)
  if (!named.success) throw invalid(place, 'has no id')
  const whole = contents.safeParse(row)
  if (whole.success) return { id: named.data.id, ...splitContents(whole.data.contents) }
  const parts = titled.safeParse(row)
  if (!parts.success) throw invalid(place, 'has neither contents nor text')
  return { id: named.data.id, title: parts.data.title, text: parts.data.text }
}

/** Search-R1's `"title"\ntext`; without a line feed all is text. */
export function splitContents(whole: string): { readonly title: string; readonly text: string } {
  const end = whole.indexOf('\n')
  if (end === -1) return { title: '', text: whole }
  return { title: whole.slice(0, end).replace(/^"(.*)"$/, '$1'), text: whole.slice(end + 1) }
}

function invalid(place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place} ${what}`, {
    cause,
    data: { place },
    fix: 'Write one object per line: {"id", "contents"} as Search-R1 does, or {"_id", "title", "text"} as BEIR does.',
  })
}
