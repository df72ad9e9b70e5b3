import type { z } from 'zod'
import { PaddockError } from '../errors.ts'
import { nearest } from './nearest.ts'

/**
 * Turns the issues of a failed parse into one `CONFIG_INVALID` that names each place, what is wrong there and the
 * nearest known key.
 */
export function explainIssues(error: z.ZodError, schema: z.ZodType, source: string): PaddockError {
  const findings = error.issues.flatMap((issue) => explainIssue(issue, schema))
  const [first] = findings
  const more =
    findings.length > 1
      ? ` (and ${findings.length - 1} more: ${findings
          .slice(1)
          .map((f) => f.what)
          .join('; ')})`
      : ''
  return new PaddockError('CONFIG_INVALID', `${source}: ${first?.what ?? 'not valid'}${more}`, {
    fix: first?.fix ?? 'Correct the named place.',
    data: { source, places: findings.map((finding) => finding.place) },
    cause: error,
  })
}

interface Finding {
  readonly place: string
  readonly what: string
  readonly fix: string
}

function explainIssue(issue: z.core.$ZodIssue, schema: z.ZodType): Finding[] {
  const place = placeOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, issue.path)
    return issue.keys.map((key) => {
      const full = place === '' ? key : `${place}.${key}`
      const close = nearest(key, known)
      return {
        place: full,
        what: `${full} is not a known key`,
        fix: close === null ? `Remove it; known keys there: ${known.join(', ')}.` : `Did you mean \`${close}\`?`,
      }
    })
  }
  return [
    {
      place,
      what: `${place === '' ? 'the configuration' : place}: ${lowerFirst(issue.message)}`,
      fix: `Correct ${place === '' ? 'the export' : `\`${place}\``}; docs/reference/config.md lists every key.`,
    },
  ]
}

function placeOf(path: readonly PropertyKey[]): string {
  return path.map(String).join('.')
}

/** The keys that an object schema knows at a path. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let here: unknown = schema
  for (const key of path) here = shapeOf(here)?.[String(key)]
  return Object.keys(shapeOf(here) ?? {})
}

/** Looks through default and optional wrappers; zod keeps the wrapped schema in `def.innerType`. */
function shapeOf(schema: unknown): Readonly<Record<string, unknown>> | undefined {
  let here: unknown = schema
  while (isObject(here)) {
    if (isObject(here['shape'])) return here['shape']
    here = isObject(here['def']) ? here['def']['innerType'] : undefined
  }
  return undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
