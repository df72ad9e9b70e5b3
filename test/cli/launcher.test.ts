/** The launcher's choice of Node, with a system `node` that only says its version and what it was given. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { launcher } from './paddock.ts'

const root = tempDir()

/** A checkout as the launcher sees it. */
function checkout(name: string, o: { node: string | null; installed?: boolean; own?: boolean; built?: boolean }) {
  const directory = join(root, name)
  const bin = join(directory, 'system')
  mkdirSync(bin, { recursive: true })
  copyFileSync(launcher, join(directory, 'paddock'))
  const fake = (path: string, version: string) =>
    writeFileSync(path, `#!/bin/sh\nif [ "$1" = --version ]; then echo v${version}; else echo "${version} $*"; fi\n`, {
      mode: 0o755,
    })
  if (o.installed !== false) mkdirSync(join(directory, 'node_modules/commander'), { recursive: true })
  if (o.own === true) {
    mkdirSync(join(directory, 'node_modules/.bin'), { recursive: true })
    fake(join(directory, 'node_modules/.bin/node'), '24.0.0-own')
  }
  if (o.built === true) {
    mkdirSync(join(directory, 'dist/src/cli'), { recursive: true })
    writeFileSync(join(directory, 'dist/src/cli/main.js'), '')
  }
  if (o.node !== null) fake(join(bin, 'node'), o.node)
  symlinkSync(join(directory, 'paddock'), join(bin, 'paddock'))
  // Through a link, as from a directory of the PATH.
  const ran = spawnSync(join(bin, 'paddock'), ['list', '--json'], {
    encoding: 'utf8',
    env: { PATH: `${bin}:/usr/bin:/bin` },
  })
  return { status: ran.status, out: ran.stdout.replaceAll(directory, '.').trim(), err: ran.stderr.trim() }
}

it.each([
  ['its own Node', { node: '20.0.0', own: true }, '24.0.0-own ./src/cli/main.ts list --json'],
  ['a system Node 24', { node: '24.1.0' }, '24.1.0 ./src/cli/main.ts list --json'],
  [
    'a system Node 22.19 with the build',
    { node: '22.19.0', built: true },
    '22.19.0 ./dist/src/cli/main.js list --json',
  ],
])('runs with %s', (name, o, out) => {
  expect(checkout(name, o)).toMatchObject({ status: 0, out })
})

it.each(['20.20.2', '22.18.0', '18.0.0'])('what npm installs says on Node %s what to do, in one line', (version) => {
  const fake = join(root, `fake-${version}.cjs`)
  writeFileSync(fake, `Object.defineProperty(process.versions, 'node', { value: '${version}' })`)
  const bin = join(dirname(launcher), 'bin/paddock.cjs')
  const ran = spawnSync(process.execPath, ['--require', fake, bin, 'doctor'], { encoding: 'utf8' })
  expect(ran).toMatchObject({ status: 3, stdout: '' })
  expect(ran.stderr).toMatch(/^paddock: Node [\d.]+ is too old; 22\.19 is the least\. Fix: .*\n$/)
  expect(ran.stderr).toContain(version)
})

it.each([
  ['Node 22.19 without the build', { node: '22.19.0' }, 'npm run build'],
  ['Node 22.18', { node: '22.18.0', built: true }, 'npm ci'],
  ['Node 20', { node: '20.1.0' }, 'npm ci'],
  ['nothing installed', { node: '24.0.0', installed: false }, 'npm ci'],
])('refuses %s in one line with the fix', (name, o, fix) => {
  const { status, out, err } = checkout(name, o)
  expect({ status, out }).toEqual({ status: 3, out: '' })
  expect(err.split('\n')).toHaveLength(1)
  expect(err).toMatch(/^paddock: .*\. Fix: /)
  expect(err).toContain(fix)
})
