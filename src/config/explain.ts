import type { z } from 'zod'
import { PaddockError } from '../core/index.ts'
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
  if (issue.code === 'invalid_union') {
    // The branch that was meant is the one whose faults lie inside the value.
    const meant = issue.errors.find((branch) => branch.length > 0 && branch.every(isInside))
    if (meant !== undefined) {
      return meant.flatMap((inner) => explainIssue({ ...inner, path: [...issue.path, ...inner.path] }, schema))
    }
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
  let here: readonly unknown[] = [schema]
  for (const key of path)
    here = here.flatMap((one) => choicesOf(one).flatMap((choice) => memberOf(choice, String(key))))
  return here.flatMap((one) => choicesOf(one).flatMap((choice) => Object.keys(shapeOf(choice) ?? {})))
}

/** False for an issue that says that the value is of another kind altogether. */
function isInside(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 || issue.code === 'unrecognized_keys'
}

/** The branches of a union, seen through wrappers; any other schema alone. */
function choicesOf(schema: unknown): readonly unknown[] {
  const inner = innermost(schema)
  const options = isObject(inner) && isObject(inner['def']) ? inner['def']['options'] : undefined
  return Array.isArray(options) ? options.flatMap(choicesOf) : [inner]
}

/** What a schema says of a key: of an object the member's schema, of a record that of its values. */
function memberOf(schema: unknown, key: string): readonly unknown[] {
  const member = shapeOf(schema)?.[key]
  if (member !== undefined) return [member]
  const values = isObject(schema) && isObject(schema['def']) ? schema['def']['valueType'] : undefined
  return values === undefined ? [] : [values]
}

function innermost(schema: unknown): unknown {
  const inner = isObject(schema) && isObject(schema['def']) ? schema['def']['innerType'] : undefined
  return inner === undefined ? schema : innermost(inner)
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
