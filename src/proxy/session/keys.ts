import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Digest, PaddockError, sha256 } from '../../core/index.ts'

const prefix = 'pdk_'
const usualStart = `Bearer ${prefix}`

/** A fresh session key: 256 random bits, recognisable in a leak scan by its prefix. */
export function newKey(): string {
  return `${prefix}${randomBytes(32).toString('base64url')}`
}

/** How a key is kept: only its SHA-256. */
export function keyDigest(key: string): Digest {
  return sha256(key)
}

/** Parts of a header's name that say that its value is a secret: whatever a client or a gateway before us calls it. */
const secretWords =
  /(^|[-_])(authorization|auth|api-?key|token|secret|password|credentials?|cookie|signature|jwt)([-_]|$)/

/** Headers that were judged before: clients send the same few with every request. */
const judged = new Map<string, boolean>()
const maxJudged = 256

/** The header carries a key: it is neither stored nor passed on. `name` in lower case. */
export function isCredential(name: string): boolean {
  const known = judged.get(name)
  if (known !== undefined) return known
  const secret = secretWords.test(name)
  if (judged.size < maxJudged) judged.set(name, secret)
  return secret
}

/**
 * The key that a request carries: bearer, `x-api-key` (Anthropic clients) or `x-goog-api-key` (Gemini clients).
 * Null when there is none. Throws `AUTH_KEY_MISMATCH` when two headers carry different keys.
 */
export function keyOf(headers: IncomingHttpHeaders): string | null {
  const { authorization } = headers
  const bearer = authorization === undefined ? undefined : bearerOf(authorization)
  if (headers['x-api-key'] === undefined && headers['x-goog-api-key'] === undefined) {
    return bearer === undefined || bearer === '' ? null : bearer
  }
  const found = [bearer, single(headers['x-api-key']), single(headers['x-goog-api-key'])].filter(
    (key): key is string => key !== undefined && key !== '',
  )
  const [first] = found
  if (first === undefined) return null
  if (found.some((key) => key !== first)) {
    throw new PaddockError('AUTH_KEY_MISMATCH', 'The request carries two different keys.', {
      fix: 'Send the session key in one header only.',
    })
  }
  return first
}

function bearerOf(authorization: string): string | undefined {
  // As nearly every client writes it.
  if (authorization.startsWith(usualStart)) return authorization.slice('Bearer '.length).trim()
  return /^bearer\s+(.+)$/i.exec(authorization)?.[1]?.trim()
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
