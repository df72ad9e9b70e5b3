/** Next steps begin with the words that started the program. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { asTyped, calledAs } from '../../src/cli/called.ts'
import { launcher } from './paddock.ts'

let directory: string
beforeAll(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'paddock-called-')))
})
afterAll(() => rmSync(directory, { recursive: true }))

function program(path: string): string {
  const file = join(directory, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, '')
  chmodSync(file, 0o755)
  return file
}

it('the launcher and the package are named as they were called', () => {
  const main = program('clone/src/cli/main.ts')
  const clone = program('clone/paddock')
  const bin = program('project/node_modules/.bin/paddock')
  const cached = program('home/.npm/_npx/0a1b/node_modules/.bin/paddock')
  const everywhere = program('usr/bin/paddock')
  mkdirSync(join(directory, 'project/inner'))
  const start = { launcher: null, cwd: directory, path: join(directory, 'usr/bin'), packages: [] }
  const from = (more: object): string => calledAs({ program: main, ...start, ...more })
  expect(from({ launcher: './paddock', cwd: join(directory, 'clone') })).toBe('./paddock')
  expect(from({ launcher: 'clone/paddock' })).toBe('clone/paddock')
  expect(from({ launcher: clone, cwd: join(directory, 'clone') })).toBe('./paddock')
  expect(from({ launcher: clone, cwd: '/' })).toBe(clone.slice(1))
  expect(from({ launcher: clone, cwd: '/usr/share/doc' })).toBe(clone)
  expect(from({ launcher: clone, path: join(directory, 'clone') })).toBe('paddock')
  expect(from({ program: bin, cwd: join(directory, 'project/inner') })).toBe('npx paddock')
  // What a program that the launcher started runs in turn was not called by the launcher.
  expect(from({ program: bin, cwd: join(directory, 'project'), launcher: './paddock' })).toBe('npx paddock')
  expect(from({ program: cached })).toBe('npx paddock-rl')
  expect(from({ program: cached, packages: ['node@24', './p.tgz'] })).toBe(
    'npx --package node@24 --package ./p.tgz paddock',
  )
  expect(from({ program: everywhere })).toBe('paddock')
  expect(from({ program: everywhere, path: '' })).toBe('usr/bin/paddock')
  expect(from({})).toBe('node clone/src/cli/main.ts')
})

it('commands in texts are replaced, and nothing else', () => {
  const typed = (text: string): string => asTyped(text, './paddock')
  expect(typed('Run `paddock fsck`, or `PADDOCK_DATA=x paddock list && paddock show <id>`.')).toBe(
    'Run `./paddock fsck`, or `PADDOCK_DATA=x ./paddock list && ./paddock show <id>`.',
  )
  expect(typed('Usage: paddock serve [options]\n\n  $ ENGINE_URL=x paddock doctor')).toBe(
    'Usage: ./paddock serve [options]\n\n  $ ENGINE_URL=x ./paddock doctor',
  )
  for (const text of ['a paddock is a field', '`--format paddock`', '`npx --package paddock-rl paddock`'])
    expect(typed(text)).toBe(text)
})

it('a page is named where it is', () => {
  expect(asTyped('See docs/reference/config.md, or https://a.b/docs/x.md.', 'paddock')).toBe(
    'See docs/reference/config.md, or https://a.b/docs/x.md.',
  )
  const ran = spawnSync(launcher, ['list', '--data', 'x', '--limit', '1'], {
    cwd: directory,
    env: { ...process.env, PADDOCK_LOG: 'loud' },
    encoding: 'utf8',
  })
  const [, page = ''] = /(\/\S*docs\/reference\/config\.md)/.exec(ran.stderr) ?? []
  expect(existsSync(page), ran.stderr).toBe(true)
})

it.each([
  ['./paddock', () => dirname(launcher), './paddock'],
  ['a link on the PATH', () => '/', 'paddock'],
])('%s says the next command so, in errors, help and results', (_, cwd, called) => {
  const bin = join(directory, 'bin')
  mkdirSync(bin, { recursive: true })
  if (called === 'paddock') symlinkSync(launcher, join(bin, 'paddock'))
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}`, PADDOCK_DATA: join(directory, 'none') }
  const ran = (...args: string[]) => spawnSync(called, args, { cwd: cwd(), env, encoding: 'utf8' })
  expect(ran('list').stderr).toContain(`\`${called} serve\``)
  expect(JSON.parse(ran('list', '--json').stderr).error.fix).toContain(`\`${called} serve\``)
  expect(ran('--help').stdout).toContain(`$ ${called} quickstart`)
  const made = ran('env', 'new', 'mine', '--into', join(directory, called === 'paddock' ? 'one' : 'two'))
  expect(made.stdout, made.stderr).toContain(`\n  ${called} validate `)
})
