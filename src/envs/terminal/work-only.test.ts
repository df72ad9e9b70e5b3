import { describe, expect, it } from 'vitest'
import type { ArchiveEntry } from '../../sandbox/index.ts'
import type { ArtifactItem } from '../contract.ts'
import { workOnly } from './work-only.ts'

type Tree = Readonly<Record<string, string | null>>

/** A tree: names that end with a slash are directories, null is a link to `x`. */
function entriesOf(tree: Tree): ArchiveEntry[] {
  return [['./', ''] as const, ...Object.entries(tree)].map(([name, text]): ArchiveEntry => {
    const path = name === './' ? '.' : name.replace(/\/$/, '')
    if (text === null) return { type: 'symlink', path, target: 'x' }
    if (name.endsWith('/')) return { type: 'directory', path, mode: 0o755 }
    return { type: 'file', path, mode: 0o755, data: Buffer.from(text) }
  })
}

/** What a verifier's box gets of a work directory. */
function taken(
  work: Tree,
  o: { readonly image?: Tree; readonly declared?: readonly string[]; readonly at?: string } = {},
): Tree {
  const path = o.at ?? '/app'
  const content = { found: true, entries: entriesOf(work), refused: [], cutShort: false, totalBytes: 0 }
  const item: ArtifactItem = { path, content }
  const brought = new Map(entriesOf(o.image ?? {}).map((entry) => [entry.path, entry]))
  const { entries } = workOnly(item, brought, new Set(o.declared ?? [])).content
  return Object.fromEntries(
    entries.flatMap((entry) => {
      if (entry.path === '.') return []
      if (entry.type === 'directory') return [[`${entry.path}/`, '']]
      return [[entry.path, entry.type === 'file' ? Buffer.from(entry.data).toString() : null]]
    }),
  )
}

const repository: Tree = { '.git/': '', '.git/HEAD': 'ref: x', '.git/objects/': '' }

describe('the work that a verifier gets', () => {
  it('is all of it that no tool reads by itself', () => {
    const work = { 'a.py': '1', 'src/': '', 'src/b.c': '2', link: null, 'package.json': '{}', Makefile: 'all:' }
    expect(taken(work)).toEqual(work)
  })

  it.each([
    'conftest.py',
    'src/conftest.py',
    'pytest.ini',
    '.pytest.ini',
    'sitecustomize.py',
    'x.pth',
    '.coveragerc',
    'jest.config.js',
    '__pycache__/a.cpython-311.pyc',
    'src/a.pyc',
    '.wh.test.py',
    'src/.wh..wh..opq',
  ])('has no %s of the agent', (name) => {
    expect(taken({ 'src/': '', [name]: 'x' })).toEqual({ 'src/': '' })
    expect(taken({ 'src/': '', [name]: null })).toEqual({ 'src/': '' })
  })

  it('has settings as the task brought them, whether they were changed or deleted', () => {
    const image = { 'conftest.py': 'own', 'tests/': '', 'tests/pytest.ini': '[pytest]', 'old.pyc': 'compiled' }
    expect(taken({ 'tests/': '', 'conftest.py': 'changed', 'old.pyc': 'changed' }, { image })).toEqual({ ...image })
    expect(taken({ ...image }, { image })).toEqual({ ...image })
    // The directory of the other is gone with the agent's word.
    expect(taken({}, { image })).toEqual({ 'conftest.py': 'own', 'old.pyc': 'compiled' })
  })

  it.each(['pyproject.toml', 'setup.cfg', 'tox.ini'])('has %s as long as it does not speak of pytest', (name) => {
    expect(taken({ [name]: '[project]' })).toEqual({ [name]: '[project]' })
    expect(taken({ [name]: '[tool.pytest.ini_options]' })).toEqual({})
    expect(taken({ [name]: null })).toEqual({})
  })

  it('has what the task declares by its own path, but no white-out', () => {
    const work = { 'conftest.py': 'asked for', 'pytest.ini': 'not', '.wh.x': '' }
    expect(taken(work, { declared: ['/app/conftest.py', '/app/.wh.x', '/app'] })).toEqual({
      'conftest.py': 'asked for',
    })
  })

  it('has no files of a login where a home is the work directory', () => {
    const work = {
      '.bashrc': 'x',
      '.gitconfig': 'x',
      '.config/': '',
      '.config/pip/': '',
      'a.txt': '1',
      'src/': '',
      'src/.env': '2',
    }
    expect(taken(work, { at: '/root' })).toEqual({ 'a.txt': '1', 'src/': '', 'src/.env': '2' })
    expect(taken(work)).toEqual(work)
    expect(taken({ '.bashrc': 'own' }, { at: '/home/agent', image: { '.bashrc': 'own' } })).toEqual({
      '.bashrc': 'own',
    })
  })

  it('has repositories without programs: no hooks, and a configuration of known keys', () => {
    const config = `[core]
\trepositoryformatversion = 0
\tbare = false
\tfsmonitor = /app/gold.sh
\tpager = less; /app/gold.sh
[user]
\tname = A B
[remote "origin"]
\turl = https://host/path.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
\tpushurl = ext::sh -c /app/gold.sh
[include]
\tpath = ../more
[diff "e"]
\ttextconv = /app/gold.sh
[core] fsmonitor = /app/gold.sh
\thooksPath = h
[filter "x"]
\tclean = a
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
`
    const work = {
      ...repository,
      '.git/config': config,
      '.git/config.worktree': config,
      '.git/hooks/': '',
      '.git/hooks/post-index-change': 'x',
    }
    expect(taken(work)).toEqual({
      ...repository,
      '.git/hooks/': '',
      '.git/config': `[core]
\trepositoryformatversion = 0
\tbare = false
[user]
\tname = A B
[remote "origin"]
\turl = https://host/path.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
`,
    })
  })

  it('finds repositories by what they hold, not by their name', () => {
    const odd = {
      'g/': '',
      'g/HEAD': 'x',
      'g/refs/': '',
      'g/config': '[core]\n\tfsmonitor = /app/x\n',
      'g/hooks/': '',
      'g/hooks/pre-commit': 'x',
    }
    expect(taken(odd)).toEqual({ 'g/': '', 'g/HEAD': 'x', 'g/refs/': '', 'g/config': '[core]\n', 'g/hooks/': '' })
    const bare = { HEAD: 'x', 'objects/': '', config: '[alias]\n\tst = !sh\n' }
    expect(taken(bare)).toEqual({ HEAD: 'x', 'objects/': '', config: '\n' })
    // A file of that name elsewhere is the agent's.
    expect(taken({ config: '[alias]' })).toEqual({ config: '[alias]' })
  })

  it("has the task's own hooks and configuration as they were", () => {
    const own = {
      ...repository,
      '.git/config': '[core]\n\tpager = less\n',
      '.git/hooks/': '',
      '.git/hooks/pre-commit': 'own',
    }
    expect(taken(own, { image: own })).toEqual(own)
    expect(taken({ ...own, '.git/hooks/pre-commit': 'changed' }, { image: own })).toEqual(own)
  })
})
