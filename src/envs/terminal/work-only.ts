import { posix } from 'node:path'
import type { ArchiveEntry, ArchiveLimits, Box } from '../../sandbox/index.ts'
import type { ArtifactItem } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** How much of each place a verifier takes. */
export const workLimits: ArchiveLimits = { maxBytes: 128 << 20, maxEntries: 40_000 }

/**
 * The places of an agent's work, in the order in which they are put into a box: what the task declares, and with shared verification also the work directory and
 * `may_change`. The root of the file system is one only if it is the work directory.
 */
export function workPlaces({ data }: TaskOf<TerminalData>, box: Pick<Box, 'workdir'>): readonly string[] {
  const declared = data.artifacts.map(({ source }) => posix.resolve(box.workdir, source))
  const more = data.verifier.shared === true ? [box.workdir, ...(data.mayChange ?? [])] : []
  return [...new Set([...more, ...declared])].filter((path) => path !== '/' || data.agent.workdir === '/')
}

/** Files of a verifier's box at the place of an item, before the agent's work comes there; null: it is no directory. */
export type Brought = ReadonlyMap<string, ArchiveEntry> | null

/** Files that say how a runner or an interpreter works, wherever they are. The last few are work too, unless they speak of pytest. */
const settings =
  /^(?:conftest\.py|\.?pytest\.(?:ini|toml)|(?:site|user)customize\.py|.*\.pth|\.coveragerc|(?:jest|vitest|babel|karma|playwright)\.config\..*|\.mocharc.*|\.rspec|\.babelrc.*)$/
const sharedSettings = /^(?:pyproject\.toml|tox\.ini|setup\.cfg)$/
const compiled = /(?:^|\/)__pycache__(?:\/|$)|\.py[co]$/
/** A layer of a container image has no other use for it. */
const whiteOut = /(?:^|\/)\.wh\./
/** At its top, files with a dot are read by programs of its owner. */
const home = /^\/(?:root|home\/[^/]+)$/

/**
 * An item as a verifier's box takes it: the agent's work, and of what verifiers run by only what the task itself brought. Caches of compiled
 * Python, settings of test runners, hooks of git and files that a login reads are as in the image, or gone; git's configuration keeps
 * {@link gitKeys}. An artifact that the task declares by its own path is taken as it is.
 */
export function workOnly(item: ArtifactItem, brought: Brought, declared: ReadonlySet<string>): ArtifactItem {
  const { entries } = item.content
  if (!entries.some((entry) => entry.path === '.')) return item
  const gits = gitDirectories(entries)
  const isSetting = (entry: ArchiveEntry): boolean =>
    isRunnerSetting(entry) || isOfLogin(item.path, entry.path) || gits.some((git) => isOfGit(git, entry.path))
  const isAsBrought = (entry: ArchiveEntry): boolean => isSame(entry, brought?.get(entry.path))
  const kept = entries.flatMap((entry): readonly ArchiveEntry[] => {
    if (whiteOut.test(entry.path)) return []
    if (declared.has(posix.join(item.path, entry.path)) || isAsBrought(entry)) return [entry]
    if (gits.some((git) => entry.path === posix.join(git, 'config'))) return [plainGitConfig(entry)]
    return isSetting(entry) ? [] : [entry]
  })
  const names = new Set(kept.map(({ path }) => path))
  // Changed or deleted, the task's own settings are there again.
  const again = [...(brought?.values() ?? [])].filter(
    (entry) => !names.has(entry.path) && entry.type === 'file' && isSetting(entry) && hasParent(names, entry.path),
  )
  const all = [...kept, ...again]
  const totalBytes = all.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.data.length : 0), 0)
  return { ...item, content: { ...item.content, entries: all, totalBytes } }
}

function hasParent(names: ReadonlySet<string>, path: string): boolean {
  return names.has(posix.dirname(path))
}

function isRunnerSetting(entry: ArchiveEntry): boolean {
  const { path } = entry
  if (compiled.test(path)) return true
  const name = posix.basename(path)
  if (!sharedSettings.test(name)) return settings.test(name)
  return entry.type !== 'file' || /pytest/i.test(Buffer.from(entry.data).toString('latin1'))
}

function isOfLogin(root: string, path: string): boolean {
  return home.test(root) && path.startsWith('.') && path !== '.'
}

/** Directories that git takes for a repository. */
function gitDirectories(entries: readonly ArchiveEntry[]): readonly string[] {
  const names = new Set(entries.map(({ path }) => path))
  return entries.flatMap(({ path }) => {
    if (posix.basename(path) !== 'HEAD') return []
    const git = posix.dirname(path)
    return ['objects', 'refs', 'commondir'].some((part) => names.has(posix.join(git, part))) ? [git] : []
  })
}

function isOfGit(git: string, path: string): boolean {
  return path === posix.join(git, 'config.worktree') || path.startsWith(`${posix.join(git, 'hooks')}/`)
}

function isSame(one: ArchiveEntry, other: ArchiveEntry | undefined): boolean {
  if (one.type === 'file') return other?.type === 'file' && Buffer.from(one.data).equals(other.data)
  if (one.type === 'symlink') return other?.type === 'symlink' && one.target === other.target
  return other?.type === 'directory' && !compiled.test(one.path)
}

/** The configuration that a repository of an agent may have, by section. None of it names a program. */
const gitKeys: Readonly<Record<string, RegExp>> = {
  core: /^(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|worktree)$/,
  extensions: /^(?:objectformat|refstorage|worktreeconfig)$/,
  user: /^(?:name|email)$/,
  init: /^defaultbranch$/,
  remote: /^(?:url|fetch|pushurl)$/,
  branch: /^(?:remote|merge|rebase)$/,
  submodule: /^(?:url|active|path)$/,
  pull: /^(?:rebase|ff)$/,
  merge: /^(?:ff|conflictstyle)$/,
}

/** The lines of a configuration that are understood whole and allowed, written again. A value is plain: no quotes, escapes or transports that run programs. */
function plainGitConfig(entry: ArchiveEntry): ArchiveEntry {
  if (entry.type !== 'file') return { type: 'file', path: entry.path, mode: 0o644, data: Buffer.from('') }
  let keys: RegExp | null = null
  const lines = Buffer.from(entry.data)
    .toString('utf8')
    .split('\n')
    .flatMap((line): readonly string[] => {
      if (!/^\s*\[/.test(line)) return keys === null ? [] : plainPair(line, keys)
      const [, name = '', of] = /^\s*\[([A-Za-z]+)(?: "([^"\\]*)")?\]\s*$/.exec(line) ?? []
      keys = gitKeys[name.toLowerCase()] ?? null
      if (keys === null) return []
      return [of === undefined ? `[${name}]` : `[${name} "${of}"]`]
    })
  return { ...entry, mode: 0o644, data: Buffer.from(`${lines.join('\n')}\n`) }
}

function plainPair(line: string, keys: RegExp): readonly string[] {
  const [, key = '', value = ''] = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*([\w@./:+*~ -]*)$/.exec(line) ?? []
  return keys.test(key.toLowerCase()) && !value.includes('::') ? [`\t${key} = ${value}`] : []
}

/**
 * Settings of git in verifiers' boxes, so that the repository of an agent runs no program. A task whose tests need hooks says
 * `GIT_CONFIG_COUNT = "0"` in the environment of its verifier.
 */
export const gitGuards: Readonly<Record<string, string>> = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: 'false',
  GIT_CONFIG_KEY_1: 'core.hooksPath',
  GIT_CONFIG_VALUE_1: '/dev/null',
}
