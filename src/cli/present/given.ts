import { existsSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { Config, EnvironmentVariables } from '../../config/index.ts'
import { isPaddockError, PaddockError } from '../../core/index.ts'

/** A value that a user gave, and where: an option, an argument, a variable or a key of the configuration. */
interface Given {
  readonly name: string
  readonly value: string
}

/** An error of a system call about a path or an address. */
interface SystemError extends Error {
  readonly code: string
  readonly syscall: string
  readonly path?: string
  readonly address?: string
  readonly hostname?: string
  readonly port?: number
}

/** All given values, the nearest first: the command line, variables, the configuration. */
export function givenValues(
  args: readonly string[],
  env: EnvironmentVariables,
  config: Config | null,
): readonly Given[] {
  const words = args.flatMap((word, at): readonly Given[] => {
    const [, option, value] = /^(--[^=]+)=(.*)$/.exec(word) ?? []
    if (option !== undefined && value !== undefined) return [{ name: option, value }]
    const before = args[at - 1] ?? ''
    if (word.startsWith('-')) return []
    return [{ name: before.startsWith('--') && !before.includes('=') ? before : '', value: word }]
  })
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && /^(PADDOCK|ENGINE)_/.test(name) ? [{ name, value }] : [],
  )
  return [...words, ...variables, ...(config === null ? [] : keysOf(config, ''))]
}

function keysOf(value: unknown, place: string): readonly Given[] {
  if (typeof value === 'string' || typeof value === 'number') return [{ name: `\`${place}\``, value: String(value) }]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => keysOf(inner, place === '' ? key : `${place}.${key}`))
}

/**
 * The failure of a system call as the user's: the path, host or port that was given, the problem, and what to give instead.
 * Null where nobody gave it, which is a bug in Paddock.
 */
export function failureOfGiven(error: unknown, given: readonly Given[], cwd: string): PaddockError | null {
  const cause = systemError(error)
  if (cause === null) return null
  const address = cause.address ?? cause.hostname
  if (address !== undefined) return addressFailure(cause, address, given)
  // read(2) of a folder names no path.
  const path = cause.path ?? (cause.code === 'EISDIR' ? folderAmong(given, cwd) : null)
  return path === null ? null : pathFailure(cause, path, given, cwd)
}

function systemError(error: unknown): SystemError | null {
  const generic = isPaddockError(error) && error.code === 'STORE_FAILED'
  const cause: unknown = generic ? error.cause : error
  if (!(cause instanceof Error) || isPaddockError(cause)) return null
  return 'syscall' in cause && 'code' in cause && typeof cause.code === 'string' ? (cause as SystemError) : null
}

/** The problem and the remedy; the name of the option is put before both. */
type Reason = readonly [what: string, fix: string]

function addressFailure(cause: SystemError, address: string, given: readonly Given[]): PaddockError | null {
  const host = given.find(({ value }) => value === address)
  const port = given.find(({ value }) => value === String(cause.port))
  const cannotListen = `this user may not listen at ${address}:${cause.port}`
  switch (cause.code) {
    case 'EADDRNOTAVAIL':
      return told(host, cause, [
        `${address} is not an address of this machine`,
        'Give 127.0.0.1, 0.0.0.0 for all addresses, or one that `ip addr` lists',
      ])
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return told(host, cause, [`the name ${address} cannot be resolved`, 'Correct it, or give an IP address'])
    case 'EACCES':
    case 'EPERM':
      return told(port, cause, [cannotListen, 'Give 0 for a free port, or one of 1024 or more'])
    default:
      return null
  }
}

/** A path that was given, as far as it is there. */
interface Looked {
  readonly asked: string
  /** Its deepest part that exists. */
  readonly there: string
  readonly isFile: boolean
  /** A folder is made, with those above it: what is missing could not be made. */
  readonly makes: boolean
}

const pathReasons: Readonly<Record<string, (at: Looked) => Reason>> = {
  ENOENT: ({ asked, there, makes }) =>
    makes
      ? [`nothing can be made in ${there}`, 'Give a path in another folder']
      : [`${asked} does not exist`, `Correct the path after ${there}, or give another one`],
  ENOTDIR: ({ there, isFile, asked }) => [
    isFile ? `${there} is a file, not a folder` : `${asked} is not a folder`,
    'Give a folder, or a path that does not exist yet',
  ],
  EEXIST: ({ there, isFile }) => [
    isFile ? `${there} is a file, not a folder` : `${there} exists already`,
    'Give a folder, or a path that does not exist yet',
  ],
  EISDIR: ({ asked }) => [`${asked} is a folder, not a file`, 'Give a file'],
  EACCES: denied,
  EPERM: denied,
  EROFS: ({ there }) => [`${there} is on a read-only file system`, 'Give a path on another file system'],
  ENAMETOOLONG: ({ asked }) => [
    `a part of the path has more than 255 bytes, or the whole more than 4,095: ${asked.slice(0, 60)}…`,
    'Give a shorter path',
  ],
  ELOOP: ({ asked }) => [`the symbolic links of ${asked} go in a circle`, 'Correct the link, or give another path'],
  EXDEV: ({ asked }) => [
    `${asked} is on another file system than what it is moved from`,
    'Give a path on the same one',
  ],
  ENOSPC: noSpace,
  EDQUOT: noSpace,
}

function denied({ there }: Looked): Reason {
  return [
    `this user has no permission for it in ${there}`,
    `Change the permissions that \`ls -ld ${there}\` shows, or give another path`,
  ]
}

function noSpace({ there }: Looked): Reason {
  return [
    `no space is left in ${there}`,
    `Free some on the disk that \`df -h ${there}\` shows, or give a path on another disk`,
  ]
}

function pathFailure(cause: SystemError, path: string, given: readonly Given[], cwd: string): PaddockError | null {
  const failed = resolve(path)
  const reason = pathReasons[cause.code]
  const [one] = given
    .filter(({ value }) => value !== '' && isAbout(resolve(cwd, value), failed, cause.code))
    .toSorted((a, b) => resolve(cwd, b.value).length - resolve(cwd, a.value).length)
  if (one === undefined || reason === undefined) return null
  const asked = resolve(cwd, one.value)
  const there = lastThere(asked)
  const makes = cause.syscall === 'mkdir'
  return told(one, cause, reason({ asked, there, isFile: !statSync(there).isDirectory(), makes }))
}

/**
 * Whether what failed at one path comes of another one that was given: it is the same or above it, or is made next to it under a hidden
 * name, or lies in it. A file missing from a folder that exists is a bug in Paddock.
 */
function isAbout(asked: string, failed: string, code: string): boolean {
  if (asked === failed || asked.startsWith(`${failed}/`)) return true
  if (failed.startsWith(`${asked}/`)) return !['ENOENT', 'EEXIST'].includes(code) || !existsSync(asked)
  const made = basename(failed)
  return dirname(asked) === dirname(failed) && made.startsWith('.') && made.includes(basename(asked))
}

function folderAmong(given: readonly Given[], cwd: string): string | null {
  const paths = given.flatMap(({ name, value }) => (name === '--data' || value === '' ? [] : [resolve(cwd, value)]))
  return paths.find((path) => existsSync(path) && statSync(path).isDirectory()) ?? null
}

/** The deepest part of a path that is there. */
function lastThere(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : lastThere(dirname(path))
}

function told(given: Given | undefined, cause: SystemError, [what, fix]: Reason): PaddockError | null {
  if (given === undefined) return null
  const { name } = given
  const code = cause.code === 'ENOSPC' || cause.code === 'EDQUOT' ? 'STORE_FAILED' : codeOf(name)
  const advice = name === '' ? fix : `For ${name}: ${fix.slice(0, 1).toLowerCase()}${fix.slice(1)}`
  return new PaddockError(code, `${name === '' ? '' : `${name}: `}${what} (${cause.code})`, {
    cause,
    fix: `${advice}.`,
  })
}

/** The code for an option or argument, else the one for a variable or key. */
function codeOf(name: string): 'USAGE' | 'CONFIG_INVALID' {
  return name === '' || name.startsWith('-') ? 'USAGE' : 'CONFIG_INVALID'
}
