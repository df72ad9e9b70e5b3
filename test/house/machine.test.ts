/** `scripts/machine` on machines that are made of a folder of programs: it sees nothing else. */
import { spawnSync } from 'node:child_process'
import { chmod, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'

const script = fileURLToPath(new URL('../../scripts/machine', import.meta.url))
let bin: string
beforeEach(async () => {
  bin = tempDir()
  for (const name of ['mktemp', 'rm', 'tail']) await symlink(`/usr/bin/${name}`, join(bin, name))
})

async function program(name: string, body: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${body}\n`)
  await chmod(join(bin, name), 0o755)
}
/** An apt-get that writes down what it is asked, and a user id. */
async function debian(uid: number): Promise<void> {
  await program('id', `echo ${uid}`)
  await program('apt-get', `echo "$*" >> ${join(bin, 'asked')}`)
}
const asked = () => readFile(join(bin, 'asked'), 'utf8').catch(() => '')
const machine = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('/bin/sh', [script, ...args], {
    env: { PATH: bin },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return { status, out: stdout + stderr }
}

it('installs only what its lane lacks', async () => {
  await debian(0)
  await program('python3', '')
  await program('openssl', '')
  expect(machine('check', '--yes')).toEqual({ status: 0, out: '' })
  const lines = (await asked()).trim().split('\n')
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatch(/^install .* debootstrap$/)
})

it('knows the modules of a Python that come in a package of their own', async () => {
  await debian(0)
  await program('debootstrap', '')
  await program('openssl', '')
  await program('python3', `test "$*" != '-c import ensurepip'`)
  expect(machine('check')).toMatchObject({
    status: 1,
    out: expect.stringMatching(/^Missing for check: python3-venv\./),
  })
})

it('does nothing where everything is there, asked or not', async () => {
  await debian(0)
  for (const name of ['dockerd', 'iptables', 'debootstrap']) await program(name, '')
  expect(machine('docker')).toEqual({ status: 0, out: '' })
  expect(await asked()).toBe('')
})

it('installs nothing without a yes, and says what is missing and how to get it', async () => {
  await debian(0)
  expect(machine('docker')).toMatchObject({
    status: 1,
    out: expect.stringMatching(/^Missing for docker: docker\.io iptables debootstrap\. Fix: .*--yes/),
  })
  expect(await asked()).toBe('')
})

it('says with --look what it would install, and installs nothing', async () => {
  await debian(0)
  expect(machine('quickstart', '--look')).toEqual({ status: 4, out: ' debootstrap\n' })
  expect(await asked()).toBe('')
  await debian(1000)
  expect(machine('quickstart', '--look').status).toBe(1)
})

it.each([
  ['without root', () => debian(1000), /Missing for quickstart: debootstrap\. Fix: sudo apt-get install debootstrap/],
  ['without apt-get', () => program('id', 'echo 0'), /Missing for quickstart: debootstrap\. Fix: .*no apt-get/],
])('names what is missing %s, also with --yes', async (_, make, message) => {
  await make()
  expect(machine('quickstart', '--yes')).toMatchObject({ status: 1, out: expect.stringMatching(message) })
  expect(await asked()).toBe('')
})

it('asks a mirror that fails again, and ends with its words', async () => {
  await debian(0)
  await program('sleep', '')
  await program('apt-get', `echo "$*" >> ${join(bin, 'asked')}; echo 'no route to the mirror'; exit 100`)
  const { status, out } = machine('quickstart', '--yes')
  expect(status).toBe(1)
  expect(out).toMatch(/no route to the mirror\nInstalling debootstrap failed, 3 times\. Fix: /)
  await rm(/whole log: ([^)]+)/.exec(out)?.[1] ?? '')
})

it.each([['nowhere'], ['check', '--quiet'], []])('refuses wrong use: %s', (...args) => {
  expect(machine(...args).status).toBe(2)
})
