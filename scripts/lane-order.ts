/**
 * The order in which CI begins lanes, and a lane its files, so that time that runs out leaves nothing out for good: what changed
 * goes first, then the others; within both, the one that begins moves on with each commit.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** An order after `turn` members went to its end. */
function fromTurn<T>(members: readonly T[], turn: number): T[] {
  const at = members.length === 0 ? 0 : turn % members.length
  return [...members.slice(at), ...members.slice(0, at)]
}

/** Those that changed first. Among the changed, and among the others, `turn` says which begins. */
export function inTurns<T>(members: readonly T[], changed: (one: T) => boolean, turn: number): T[] {
  const first = members.filter((one) => changed(one))
  return [
    ...fromTurn(first, turn),
    ...fromTurn(
      members.filter((one) => !first.includes(one)),
      turn,
    ),
  ]
}

/**
 * True when a test changed, or what it covers: the files that it imports, and, beside the sources, all of its folder. What
 * imports import is not followed: nearly every test would count as changed by nearly every commit.
 */
export function covers(test: string, changed: ReadonlySet<string>, root = '.'): boolean {
  if (changed.has(test)) return true
  const folder = `${dirname(test)}/`
  if (!test.startsWith('test/') && [...changed].some((file) => file.startsWith(folder))) return true
  const path = join(root, test)
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  for (const [, name = ''] of text.matchAll(/from '(\.[^']+)'/g)) {
    if (changed.has(normalize(join(dirname(test), name)))) return true
  }
  return false
}

/**
 * Files that the commits of the day before the newest one changed, and those not committed. Counted back from the newest commit, not
 * from now, so that the same commit gives the same answer. `since` names another beginning. Nothing where there is no git, or
 * where the clone is too shallow to say.
 */
export function changedFiles(root = '.', since?: string): ReadonlySet<string> {
  const base = since ?? lastOfDayBefore(root)
  if (base === undefined) return new Set()
  const listed = git(root, 'diff', '--name-only', base)
  return new Set((listed ?? '').split('\n').filter((line) => line !== ''))
}

function lastOfDayBefore(root: string): string | undefined {
  const newest = Number(git(root, 'log', '-1', '--format=%ct'))
  if (!(newest > 0)) return undefined
  const found = git(root, 'rev-list', '-1', `--before=${newest - 86_400}`, 'HEAD')
  return found === undefined || found === '' ? undefined : found
}

/** The number of commits; in a shallow clone, where that stays the same, a number that the newest commit's id gives. */
export function turnOf(root = '.'): number {
  if (git(root, 'rev-parse', '--is-shallow-repository') === 'true') {
    return Number.parseInt(git(root, 'rev-parse', 'HEAD')?.slice(0, 8) ?? '0', 16)
  }
  return Number(git(root, 'rev-list', '--count', 'HEAD') ?? 0)
}

function git(root: string, ...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
