/** Which lane and which file CI begins with. */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { changedFiles, covers, inTurns, turnOf } from '../../scripts/lane-order.ts'

let at: string
beforeEach(async () => {
  at = await mkdtemp(join(tmpdir(), 'paddock-order-'))
  git('init', '--quiet')
})
afterEach(() => rm(at, { recursive: true }))
function git(...args: readonly string[]): void {
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false']
  const { status, stderr } = spawnSync('git', ['-C', at, ...who, ...args], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
}
async function commit(file: string, hour: number, text = ''): Promise<void> {
  await mkdir(dirname(join(at, file)), { recursive: true })
  await writeFile(join(at, file), text)
  git('add', '.')
  const date = new Date(Date.UTC(2026, 0, 1, hour)).toISOString()
  const env = { ...process.env, GIT_COMMITTER_DATE: date, GIT_AUTHOR_DATE: date }
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false']
  expect(spawnSync('git', ['-C', at, ...who, 'commit', '--quiet', '-m', file], { env }).status).toBe(0)
}

it('puts what changed first, and begins with the next one after each commit', () => {
  const letters = ['a', 'b', 'c', 'd', 'e']
  const changed = (one: string): boolean => one === 'b' || one === 'd'
  expect(inTurns(letters, changed, 0).join('')).toBe('bdace')
  expect(inTurns(letters, changed, 1).join('')).toBe('dbcea')
  expect(inTurns(letters, () => false, 7).join('')).toBe('cdeab')
  expect(inTurns([], changed, 7)).toEqual([])
})

it('takes the commits of the day before the newest one as what changed, and names another beginning', async () => {
  await commit('old.ts', 0)
  await commit('middle.ts', 2)
  await commit('new.ts', 25)
  expect([...changedFiles(at)]).toEqual(['middle.ts', 'new.ts'])
  expect([...changedFiles(at, 'HEAD~1')]).toEqual(['new.ts'])
  expect(turnOf(at)).toBe(3)
})

it('knows of no change where the history does not reach back a day', async () => {
  await commit('only.ts', 0)
  expect([...changedFiles(at)]).toEqual([])
  expect([...changedFiles(join(at, 'nowhere'))]).toEqual([])
})

it('takes turns in a shallow clone too, by the id of its commit', async () => {
  await commit('one.ts', 0)
  await commit('two.ts', 1)
  const clone = join(at, 'clone')
  spawnSync('git', ['clone', '--quiet', '--depth=1', `file://${at}`, clone])
  const { stdout } = spawnSync('git', ['-C', at, 'rev-parse', 'HEAD'], { encoding: 'utf8' })
  expect(turnOf(clone)).toBe(Number.parseInt(stdout.slice(0, 8), 16))
})

it('counts a test as changed by itself, its imports, and its folder beside the sources', async () => {
  await commit('test/lane/a.test.ts', 0, "import { b } from '../../src/b.ts'\n")
  expect(covers('test/lane/a.test.ts', new Set(['src/b.ts']), at)).toBe(true)
  expect(covers('test/lane/a.test.ts', new Set(['test/lane/a.test.ts']), at)).toBe(true)
  expect(covers('test/lane/a.test.ts', new Set(['test/lane/other.ts', 'src/c.ts']), at)).toBe(false)
  expect(covers('src/room/c.test.ts', new Set(['src/room/part/d.ts']), at)).toBe(true)
  expect(covers('src/room/c.test.ts', new Set(['src/roomy/d.ts']), at)).toBe(false)
})
