import { parse, TomlError } from 'smol-toml'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'

/** Parses TOML and holds it against a schema. Throws `TASK_INVALID` with file, place and fix. */
export function parseToml<T>(text: string, file: string, schema: z.ZodType<T>): T {
  let raw: unknown
  try {
    raw = parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    throw new PaddockError('TASK_INVALID', `${file}:${error.line}:${error.column} is not TOML`, {
      cause: error,
      data: { file, place: `${error.line}:${error.column}` },
      fix: error.message.split('\n')[0] ?? 'Correct the TOML.',
    })
  }
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  throw explain(parsed.error, file, schema)
}

function explain(error: z.ZodError, file: string, schema: z.ZodType): PaddockError {
  const issue = error.issues[0]
  if (issue === undefined) return new PaddockError('TASK_INVALID', `${file} does not fit`)
  const place = placeOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0] ?? ''
    const known = keysAt(schema, issue.path)
    const near = nearest(key, known)
    const full = place === '' ? key : `${place}.${key}`
    return new PaddockError('TASK_INVALID', `${file}: unknown key ${full}`, {
      data: { file, place: full, known },
      fix: near === null ? `Keys here: ${known.join(', ')}.` : `Did you mean ${near}?`,
    })
  }
  return new PaddockError('TASK_INVALID', `${file}: ${place === '' ? 'the file' : place}: ${issue.message}`, {
    data: { file, place },
    fix: `Correct ${place === '' ? 'the file' : place}: ${issue.message}.`,
  })
}

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '')
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = unwrap(schema)
  for (const part of path) {
    if (at instanceof z.ZodArray) at = unwrap(at.element)
    else if (at instanceof z.ZodObject) at = unwrap(at.shape[String(part)])
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : []
}

function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable) {
    return unwrap(schema.unwrap())
  }
  if (schema instanceof z.ZodUnion) return unwrap(schema.options.find((option) => option instanceof z.ZodObject))
  return schema
}

/** The known name that a misspelt one most likely meant: least edits, at most a third of its length. Null: none near. */
export function nearest(name: string, known: readonly string[]): string | null {
  const scored = known.map((candidate) => ({ candidate, edits: distance(name, candidate) }))
  const best = scored.toSorted((a, b) => a.edits - b.edits)[0]
  return best !== undefined && best.edits <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : null
}

// Levenshtein distance, one row at a time.
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
