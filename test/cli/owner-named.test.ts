import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openStore } from '../../src/trajectory/index.ts'
import { paddock } from './here.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-owner-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

it.each([
  ['view --annotate', `the viewer (pid ${process.pid}) annotates`, 'End it, or start it without --annotate.'],
  ['import', `\`paddock import\` (pid ${process.pid}) works on`, 'Wait until it ends'],
])('run refuses at once a directory that %s holds, by name', async (work, what, fix) => {
  await using _store = await openStore(directory, { work })
  const tasks = join(import.meta.dirname, '../../examples/tasks/terminal')
  const { code, err } = await paddock(['run', tasks, '--n', '1', '--data', directory])
  expect(code).toBe(3)
  expect(err).toContain(`STORE_LOCKED: ${what} ${directory}`)
  expect(err).toContain(fix)
  expect(err).not.toContain('waiting')
})

it('serve names the viewer that holds its directory', async () => {
  await using _store = await openStore(directory, { work: 'view --annotate' })
  const { err } = await paddock(['serve', '--data', directory, '--port', '0', '--control-port', '0'])
  expect(err).toContain(`the viewer (pid ${process.pid}) annotates`)
})
