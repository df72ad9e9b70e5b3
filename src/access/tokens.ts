/**
 * Tokens with a name, an end and one role: a file each in the data directory, so that commands make and revoke them with or
 * without an owner, and an owner sees it at the next request.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { link, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PaddockError, sha256 } from '../core/index.ts'
import { sameToken } from './control-token.ts'
import { machineToken, type Role, roles } from './roles.ts'
import { offeredRoles } from './route-table.ts'

const tokenRecord = z.strictObject({
  name: z.string(),
  role: z.enum(roles),
  /** Of the whole token; the token itself is kept nowhere. */
  sha256: z.string(),
  createdAt: z.number(),
  endsAt: z.number(),
  revokedAt: z.number().nullable(),
})

/** A token as it is stored. Times are milliseconds since the epoch. */
export type TokenRecord = z.infer<typeof tokenRecord>

/** No underscore: what stands behind the second one in a token is its secret. */
const namePattern = /^[a-z0-9][a-z0-9.-]{0,63}$/
const tokenPattern = /^pdk_([a-z0-9][a-z0-9.-]{0,63})_[\w-]{43}$/
const dayMs = 86_400_000

const directoryOf = (directory: string): string => join(directory, 'tokens')
const fileOf = (directory: string, name: string): string => join(directoryOf(directory), `${name}.json`)

/**
 * Makes a token and says it, once. Throws `TOKEN_REFUSED` for a name that is none or was given before, also to a token that was revoked
 * (what is recorded under a name is one token's), and for a role that no route takes.
 */
export async function createToken(
  directory: string,
  asked: { readonly name: string; readonly role: Role; readonly days: number; readonly now: number },
): Promise<{ readonly token: string; readonly record: TokenRecord }> {
  const { name, role, days, now } = asked
  if (!namePattern.test(name) || name === machineToken) {
    throw refused(
      `${JSON.stringify(name)} cannot be the name of a token`,
      'Take lower-case letters, digits, dots and dashes.',
    )
  }
  if (!offeredRoles.includes(role)) {
    throw refused(`no route takes the role ${role} yet`, `Take one of ${offeredRoles.join(', ')}.`)
  }
  const token = `pdk_${name}_${randomBytes(32).toString('base64url')}`
  const record = { name, role, sha256: sha256(token), createdAt: now, endsAt: now + days * dayMs, revokedAt: null }
  await mkdir(directoryOf(directory), { recursive: true, mode: 0o700 })
  const unfinished = await written(directory, record)
  try {
    // A link is refused where the name is taken, and shows the file whole or not at all.
    await link(unfinished, fileOf(directory, name))
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
    throw refused(`the name ${name} was given before`, 'Take another name; `paddock token list` shows those given.')
  } finally {
    await rm(unfinished, { force: true })
  }
  return { token, record }
}

/** Ends a token now. Throws `NOT_FOUND`. */
export async function revokeToken(directory: string, name: string, now: number): Promise<TokenRecord> {
  const before = namePattern.test(name) ? readRecord(directory, name) : null
  if (before === null) {
    throw new PaddockError('NOT_FOUND', `there is no token ${name} in ${directory}`, {
      fix: 'See `paddock token list`.',
    })
  }
  if (before.revokedAt !== null) return before
  const record = { ...before, revokedAt: now }
  await rename(await written(directory, record), fileOf(directory, name))
  return record
}

/** All that were ever made, by name. Throws `STORE_CORRUPT` for one that cannot be read. */
export function listTokens(directory: string): readonly TokenRecord[] {
  const names = filesOf(directory).flatMap((file) => (file.endsWith('.json') ? [file.slice(0, -'.json'.length)] : []))
  return names.toSorted().flatMap((name) => readRecord(directory, name) ?? [])
}

/** The record of a token that opens something now; null for any other. */
export function validToken(directory: string, token: string, now: number): TokenRecord | null {
  const name = tokenPattern.exec(token)?.[1]
  const record = name === undefined ? null : readRecord(directory, name)
  return record !== null && sameToken(sha256(token), record.sha256) && isValid(record, now) ? record : null
}

/** Whether a token of {@link validToken} still is. */
export function stillValid(directory: string, { name, sha256: digest }: TokenRecord, now: number): boolean {
  const record = readRecord(directory, name)
  return record !== null && record.sha256 === digest && isValid(record, now)
}

/** What a token is today. */
export function tokenState({ revokedAt, endsAt }: TokenRecord, now: number): 'valid' | 'ended' | 'revoked' {
  if (revokedAt !== null) return 'revoked'
  return now < endsAt ? 'valid' : 'ended'
}

function isValid(record: TokenRecord, now: number): boolean {
  return tokenState(record, now) === 'valid'
}

/** Null: there is no such file. Throws `STORE_CORRUPT`. */
function readRecord(directory: string, name: string): TokenRecord | null {
  const file = fileOf(directory, name)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
  try {
    return tokenRecord.parse(JSON.parse(text))
  } catch (cause) {
    throw new PaddockError('STORE_CORRUPT', `${file} is no token`, {
      cause,
      fix: 'Remove the file, and make the token anew under another name.',
    })
  }
}

function filesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directoryOf(directory))
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}

/** A file of its own with the record, durable. */
async function written(directory: string, record: TokenRecord): Promise<string> {
  const path = join(directoryOf(directory), `${record.name}.${randomBytes(6).toString('hex')}.tmp`)
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(record)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  return path
}

function refused(what: string, fix: string): PaddockError {
  return new PaddockError('TOKEN_REFUSED', what, { fix })
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
