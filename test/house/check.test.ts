/** `./check` as a whole, over programs of this test's own in the place of tsc, oxlint, vitest and the rest. */
import { spawnSync } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const taken = ['check', 'scripts/check-figures.mjs', 'scripts/closing-line.mjs', 'scripts/docker-up', 'scripts/machine']
let at: string
beforeEach(async () => {
  at = await mkdtemp(join(tmpdir(), 'paddock-check-'))
  for (const file of [...taken, 'scripts/node-modules']) await cp(join(repository, file), join(at, file))
  await write('package-lock.json', '{}')
  await write('node_modules/.paddock-lock', '{}')
  for (const name of ['tsc', 'oxlint', 'oxfmt', 'knip', 'vite']) await program(`node_modules/.bin/${name}`, '')
  for (const name of ['python3', 'openssl', 'debootstrap']) await program(`bin/${name}`, '')
  for (const name of ['npm', 'apt-get']) await program(`bin/${name}`, `echo "${name} $*" >> ${at}/asked`)
  await program('scripts/house', '')
  await symlink(process.execPath, join(at, 'node_modules/.bin/node'))
  await symlink(process.execPath, join(at, 'bin/node'))
  // It runs the tests that the report of this test's own names.
  await program(
    'node_modules/.bin/vitest',
    `for arg; do case "$arg" in --outputFile.json=*) cp ${at}/report.json "\${arg#*=}" ;; esac; done`,
  )
  await report([])
})
afterEach(() => rm(at, { recursive: true }))

async function write(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(at, name)), { recursive: true })
  await writeFile(join(at, name), text)
}
async function program(name: string, body: string): Promise<void> {
  await write(name, `#!/bin/sh\n${body}\n`)
  await chmod(join(at, name), 0o755)
}
/** Tests of two files: one that asks for Docker, one that does not. */
async function report(skipped: readonly { readonly file: string; readonly test: string }[]): Promise<void> {
  await write('boxes.test.ts', 'describe.runIf(await requireDocker())\n')
  await write('plain.test.ts', '\n')
  const tests = (file: string) => [
    { fullName: 'passes', status: 'passed' },
    ...skipped.filter((one) => one.file === file).map(({ test }) => ({ fullName: test, status: 'skipped' })),
  ]
  const testResults = ['boxes.test.ts', 'plain.test.ts'].map((file) => ({
    name: join(at, file),
    status: 'passed',
    assertionResults: tests(file),
  }))
  const sums = { numPassedTests: 2, numFailedTests: 0, numPendingTests: skipped.length }
  await write('report.json', JSON.stringify({ ...sums, testResults }))
}
/** Runs it without a terminal, where no Docker answers and this user may not start one. */
function check(...args: readonly string[]): { readonly code: number | null; readonly out: string } {
  const { status, stdout } = spawnSync('/bin/sh', ['-c', 'exec "$0" "$@" 2>&1', join(at, 'check'), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: `${join(at, 'bin')}:/usr/bin:/bin`, DOCKER_HOST: 'unix:///nowhere/docker.sock' },
  })
  return { code: status, out: stdout }
}
const lines = (out: string): string[] => out.trimEnd().split('\n')
const inBoxes = { file: 'boxes.test.ts', test: 'in a box' }
const later = { file: 'plain.test.ts', test: 'later' }

it('runs the rest without Docker and root, and ends with what was not run', async () => {
  await report([inBoxes])
  await program('bin/id', 'echo 1000')
  await rm(join(at, 'bin/debootstrap'))
  const { code, out } = check()
  expect(out).toContain('Missing for check: debootstrap. Fix: sudo apt-get install debootstrap')
  expect(code, out).toBe(0)
  expect(lines(out).slice(-2)).toEqual(['2 passed, 0 failed, 1 skipped', '2 passed, 1 not run: no Docker'])
  expect(lines(out).slice(0, 2)).toEqual([
    expect.stringMatching(/^Checks types.* the tests: about \d+ minutes on two quiet cores\.$/),
    expect.stringMatching(/^Tests that need Docker are not run\. Docker does not answer at DOCKER_HOST=/),
  ])
  expect(check().out).toContain('as the last run here')
})

it('runs the tests in boxes where it could start Docker, and leaves them out where it could not', async () => {
  await program('node_modules/.bin/vitest', `echo "no Docker: \${PADDOCK_NO_DOCKER:-}" > ${at}/ran`)
  const ran = (): Promise<string> => readFile(join(at, 'ran'), 'utf8')
  for (const [started, without] of [
    [0, ''],
    [1, '1'],
  ]) {
    await program(
      'scripts/docker-up',
      `[ "$1" != --look ] || { echo "Docker: the daemon is started"; exit 4; }\nexit ${started}`,
    )
    check('--yes')
    expect(await ran()).toBe(`no Docker: ${without}\n`)
  }
})

it('ends with the counts alone where nothing was left out', () => {
  const { code, out } = check()
  expect(code, out).toBe(0)
  expect(lines(out).at(-1)).toBe('2 passed, 0 failed, 0 skipped')
})

it('says what it lacks and installs it without a terminal, and not with --no-install', async () => {
  await write('package-lock.json', '{"newer":true}')
  const asked = (): Promise<string> => readFile(join(at, 'asked'), 'utf8').catch(() => '')
  expect(check('--fast', '--no-install')).toMatchObject({ code: 0, out: expect.not.stringContaining('Installs first') })
  expect(await asked()).toBe('')
  expect(check('--fast').out).toContain('Installs first: npm dependencies')
  expect(await asked()).toMatch(/^npm ci /)
})

it.each([
  ['\n', ['npm ci', 'apt-get install']],
  ['n\n', []],
])('asks once on a terminal, all that it would install: %j', async (input, installed) => {
  await write('package-lock.json', '{"newer":true}')
  await program('bin/id', 'echo 0')
  await rm(join(at, 'bin/debootstrap'))
  const { stdout } = spawnSync('script', ['-qec', `sh ${join(at, 'check')}`, '/dev/null'], {
    encoding: 'utf8',
    input,
    env: { PATH: `${join(at, 'bin')}:/usr/bin:/bin`, DOCKER_HOST: 'unix:///nowhere/docker.sock' },
  })
  expect(stdout).toContain(
    'Installs first: npm dependencies (about 500 MB in node_modules); Debian packages: debootstrap.',
  )
  expect(stdout.split('[Y/n]')).toHaveLength(2)
  const asked = await readFile(join(at, 'asked'), 'utf8').catch(() => '')
  expect(asked.match(/^(npm ci|apt-get install)/gm) ?? []).toEqual(installed)
})

it('--strict is red for a skipped test that no line allows, and for a line without a test', async () => {
  await report([inBoxes, later])
  expect(check().code).toBe(0)
  const red = check('--strict')
  expect(red.code).toBe(1)
  expect(red.out).toContain('Skipped (no Docker), and test/skips.json does not allow it: boxes.test.ts > in a box')
  expect(red.out).toContain('Skipped, and test/skips.json does not allow it: plain.test.ts > later')
  const allowed = [inBoxes, later].map((one) => ({ ...one, why: 'this is a fixture' }))
  await write('test/skips.json', JSON.stringify(allowed))
  expect(check('--strict')).toMatchObject({ code: 0, out: expect.not.stringContaining('does not allow') })
  await report([inBoxes])
  const stale = check('--strict')
  expect(stale.code).toBe(1)
  expect(stale.out).toContain('test/skips.json allows a test that does not exist: plain.test.ts > later')
})

it.each([
  ['--fsat', '--fast'],
  ['--strct', '--strict'],
  ['-y', '--yes'],
  ['--noinstall', '--no-install'],
])('names the nearest option for %s: %s', (given, near) => {
  expect(check(given)).toEqual({
    code: 2,
    out: `check: there is no option ${given}. Fix: ${near} (./check --help lists them).\n`,
  })
})

it('--help lists every option', () => {
  const { code, out } = check('--help')
  expect(code).toBe(0)
  for (const option of ['--yes', '--no-install', '--strict', '--fast']) expect(out).toContain(option)
})
