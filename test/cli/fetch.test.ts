/** Published data sets by name and version, out of real git repositories on this machine. */
import { execFileSync } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { takeDataset } from '../../src/cli/datasets/checkout.ts'
import { findDataset } from '../../src/cli/datasets/registry.ts'
import { terminalEnvironment } from '../../src/envs/index.ts'
import type { PaddockError } from '../../src/core/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'

const environment = terminalEnvironment({ publicNetwork: 'without' })
const published = fileURLToPath(new URL('../published/tasks', import.meta.url))

let directory: string
let url: string
/** Of the repository: one that has the tasks, and a later one without them. */
let commits: readonly string[]

function git(...args: readonly string[]): string {
  const who = ['-c', 'user.name=nobody', '-c', 'user.email=nobody@localhost']
  return execFileSync('git', [...who, ...args], { cwd: join(directory, 'repository'), encoding: 'utf8' }).trim()
}

async function commit(title: string): Promise<string> {
  git('add', '--all')
  git('commit', '--quiet', '--message', title)
  return git('rev-parse', 'HEAD')
}

beforeAll(async () => {
  directory = tempDir()
  const repository = join(directory, 'repository')
  await mkdir(repository)
  git('init', '--quiet', '--initial-branch', 'main')
  for (const name of ['default-values', 'first-line']) {
    await cp(join(published, name), join(repository, 'sets/one', name), { recursive: true })
  }
  await writeFile(join(repository, 'sets/one/README.md'), 'No task.')
  await symlink('/etc', join(repository, 'sets/etc'))
  await mkdir(join(repository, 'sets/large'))
  await writeFile(
    join(repository, 'sets/large/data.bin'),
    'version https://git-lfs.example/spec/v1\noid sha256:0\nsize 9\n',
  )
  const first = await commit('tasks')
  await rm(join(repository, 'sets/one'), { recursive: true })
  commits = [first, await commit('no tasks')]
  url = `file://${repository}`
})

let made = 0
/** One command over a registry of these entries; `into` is where the tasks would be. */
async function fetched(entries: unknown, args: readonly string[]) {
  made += 1
  const registry = join(directory, `registry-${made}.json`)
  const into = join(directory, `tasks-${made}`)
  await writeFile(registry, typeof entries === 'string' ? entries : JSON.stringify(entries))
  const ended = await paddock(['fetch', ...args, '--registry', registry, '--into', into, '--json'])
  return { ...ended, into }
}

const harborTask = (path: string, more: object = {}) => ({ path, git_url: url, git_commit_id: commits[0], ...more })

describe('paddock fetch', () => {
  it('takes the tasks of a Harbor registry at their commits, which the environment loads as they are', async () => {
    const tasks = [
      harborTask('sets/one/default-values', { name: 'org/default-values' }),
      harborTask('sets/one/first-line'),
    ]
    const set = { name: 'set', version: '2.0', description: '', tasks }
    const { code, err, into, out } = await fetched([{ ...set, version: '1.0' }, set], ['set@2.0'])
    expect([code, err]).toEqual([0, ''])
    expect((await readdir(into)).toSorted()).toEqual(['dataset.json', 'default-values', 'first-line'])
    const loaded = await environment.load(into)
    const direct = await Promise.all(
      ['default-values', 'first-line'].map((name) => environment.load(join(published, name))),
    )
    const digests = direct.flat().map(({ digest }) => digest)
    expect(loaded.map(({ digest }) => digest)).toEqual(digests)
    const told = JSON.parse(await readFile(join(into, 'dataset.json'), 'utf8')) as { readonly tasks: readonly object[] }
    expect(told.tasks[0]).toEqual({ name: 'default-values', url, commit: commits[0], path: 'sets/one/default-values' })
    expect((JSON.parse(out) as { readonly tasks: unknown }).tasks).toEqual(told.tasks)
  })

  it('takes a folder of tasks of a Terminal-Bench registry, all or those that it names', async () => {
    const set = { name: 'core', github_url: url, dataset_path: './sets/one', branch: 'main', commit_hash: commits[0] }
    const entries = [
      { ...set, version: '0.1', task_id_subset: null },
      { ...set, version: '0.2', task_id_subset: ['first-line'] },
    ]
    const all = await fetched(entries, ['core@0.1'])
    expect([all.code, all.err]).toEqual([0, ''])
    expect((await readdir(all.into)).toSorted()).toEqual(['dataset.json', 'default-values', 'first-line'])
    const some = await fetched(entries, ['core@0.2'])
    expect((await readdir(some.into)).toSorted()).toEqual(['dataset.json', 'first-line'])
    const one = await fetched(entries, ['core@0.1', '--task', 'default-values'])
    expect((await readdir(one.into)).toSorted()).toEqual(['dataset.json', 'default-values'])
  })

  it('says that it may be another the next time where the registry names no commit', async () => {
    git('checkout', '--quiet', '-b', 'kept', commits[0] ?? '')
    const tasks = [harborTask('sets/one/first-line', { git_commit_id: 'kept' })]
    const { code, out } = await fetched([{ name: 'set', version: '1', tasks }], ['set@1'])
    expect([code, JSON.parse(out)]).toMatchObject([0, { pinned: false, tasks: [{ commit: commits[0] }] }])
  })

  const refusals: readonly (readonly [string, () => readonly [unknown, readonly string[]], string, string])[] = [
    [
      'a version that is not there',
      () => [[{ name: 'set', version: '1', tasks: [harborTask('a')] }], ['set@2']],
      'NOT_FOUND',
      'set@1',
    ],
    [
      'a name that is nearly there',
      () => [[{ name: 'terminal', version: '1', tasks: [harborTask('a')] }], ['terminl']],
      'NOT_FOUND',
      'Did you mean terminal?',
    ],
    [
      'several versions without one being named',
      () => [['1', '2'].map((version) => ({ name: 'set', version, tasks: [harborTask('a')] })), ['set']],
      'NOT_FOUND',
      'several versions',
    ],
    ['a registry that is no JSON', () => ['{', ['set@1']], 'REGISTRY_INVALID', 'not JSON'],
    [
      'an entry without tasks',
      () => [[{ name: 'set', version: '1', tasks: [] }], ['set@1']],
      'REGISTRY_INVALID',
      'set@1',
    ],
    ['a folder that is not there', () => [one('sets/none'), ['set@1']], 'REGISTRY_INVALID', 'sets/none'],
    ['a path that leads out of its repository', () => [one('../../etc'), ['set@1']], 'REGISTRY_INVALID', '../../etc'],
    ['a link that does', () => [one('sets/etc'), ['set@1']], 'REGISTRY_INVALID', 'sets/etc leads out'],
    [
      'a commit that is an option of git',
      () => [one('sets/one', { git_commit_id: '--upload-pack=touch ran' }), ['set@1']],
      'REGISTRY_INVALID',
      'no repository and commit',
    ],
    [
      'an address that runs a program',
      () => [one('sets/one', { git_url: `ext::sh -c touch% ${directory}/ran` }), ['set@1']],
      'DATASET_UNREACHABLE',
      'ext',
    ],
    [
      'a commit that is not there',
      () => [one('sets/one', { git_commit_id: '0'.repeat(40) }), ['set@1']],
      'DATASET_UNREACHABLE',
      '0000000',
    ],
    [
      'a file that git keeps elsewhere',
      () => [one('sets/large'), ['set@1']],
      'DATASET_UNREACHABLE',
      'pointer of git-lfs',
    ],
    [
      'a task that the data set does not have',
      () => [one('sets/one/first-line'), ['set@1', 'other']],
      'NOT_FOUND',
      'other',
    ],
  ]
  const one = (path: string, more: object = {}) => [{ name: 'set', version: '1', tasks: [harborTask(path, more)] }]
  it.each(refusals)('refuses %s, and leaves nothing', async (_, order, code, words) => {
    const [entries, [asked = '', task]] = order()
    const registry = join(directory, 'registry.json')
    await writeFile(registry, typeof entries === 'string' ? entries : JSON.stringify(entries))
    const { signal } = new AbortController()
    const before = await readdir(directory)
    const refused = findDataset(registry, asked, { cwd: directory, signal }).then((dataset) =>
      takeDataset(dataset, { into: join(directory, 'refused'), only: task === undefined ? [] : [task], signal }),
    )
    const error = await refused.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code })
    expect(`${(error as PaddockError).message} ${(error as PaddockError).fix}`).toContain(words)
    expect(await readdir(directory)).toEqual(before)
  })

  it('refuses a folder that is there already', async () => {
    const { signal } = new AbortController()
    const dataset = { name: 'set', version: '1', sources: [] }
    await expect(takeDataset(dataset, { into: directory, only: [], signal })).rejects.toMatchObject({ code: 'USAGE' })
  })
})
