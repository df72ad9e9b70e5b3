/** What stands where a secret stood. */
const gone = '[redacted]'

/** Members whose value is a secret whatever it looks like: headers of the dialects, keys of the configuration. */
const secretNames =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-api-key|x-goog-api-key|api[-_]?key|key|token|control-?token|secret|password|credentials?)$/i

/** Secrets by their own shape: session keys, keys of the big providers, bearer values, keys and users in URLs. */
const secretShapes: readonly (readonly [RegExp, string])[] = [
  [/pdk_[\w-]{8,}/g, `pdk_${gone}`],
  [/\bsk-[\w-]{8,}/g, `sk-${gone}`],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${gone}`],
  [/([?&;](?:key|api[-_]?key|access_token|token|secret|password|sig)=)[^&\s"'#]+/gi, `$1${gone}`],
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi, `$1${gone}@`],
]

/** Deeper than anything that is logged. */
const maxDepth = 8

/**
 * A copy without secrets: members with a secret's name, texts in a secret's shape, and the given values wherever they
 * stand. Errors become plain objects with code, message, stack and cause.
 */
export function withoutSecrets(value: unknown, secrets: readonly string[] = []): unknown {
  return scrubbed(
    value,
    secrets.filter((secret) => secret !== ''),
    0,
  )
}

function scrubbed(value: unknown, secrets: readonly string[], depth: number): unknown {
  if (typeof value === 'string') return scrubbedText(value, secrets)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth > maxDepth) return gone
  if (Array.isArray(value)) return value.map((item) => scrubbed(item, secrets, depth + 1))
  const members = value instanceof Error ? errorMembers(value) : Object.entries(value)
  return Object.fromEntries(
    members.map(([name, inner]) => [
      name,
      secretNames.test(name) && inner !== null && inner !== undefined ? gone : scrubbed(inner, secrets, depth + 1),
    ]),
  )
}

function scrubbedText(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) clean = clean.replaceAll(secret, gone)
  for (const [shape, instead] of secretShapes) clean = clean.replace(shape, instead)
  return clean
}

function errorMembers(error: Error): readonly (readonly [string, unknown])[] {
  const { name, message, stack, cause } = error
  const own = Object.entries(error).filter(([key]) => key !== 'cause')
  return [
    ['type', name],
    ['message', message],
    ['stack', stack],
    ...own,
    ...(cause === undefined ? [] : [['cause', cause] as const]),
  ]
}
