import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

it('paddock validate proves all terminal tasks: oracle 1, null agent 0, cheats 0, twice the same', async () => {
  const { stdout } = await promisify(execFile)(
    './paddock',
    ['--json', 'validate', 'examples/tasks/terminal', '--parallel', '3'],
    {
      cwd: root,
      maxBuffer: 16 * 2 ** 20,
    },
  ).catch((error: Error & { readonly stdout?: string; readonly stderr?: string }) => {
    throw new Error(`${error.message}\n${error.stderr ?? ''}\n${error.stdout ?? ''}`)
  })
  const lines = stdout.trim().split('\n').slice(0, -1)
  const tasks = lines
    .map((line): { task: string; status: string; proofs: { name: string; status: string }[] } => JSON.parse(line))
    .toSorted((a, b) => (a.task < b.task ? -1 : 1))
  const folders = (await readdir(`${root}/examples/tasks/terminal`, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  expect(new Map(tasks.map(({ task, status }) => [task, status]))).toEqual(
    new Map(folders.map((name) => [name, 'proven'])),
  )
  expect(folders.length).toBeGreaterThanOrEqual(12)
  // What the host can see is told as what it is.
  const hacked = tasks.flatMap(({ task, proofs }) =>
    proofs.filter(({ status }) => status === 'hacked').map(({ name }) => `${task} ${name}`),
  )
  expect(hacked).toEqual([
    'archive-recovery cheat links-out',
    'data-wrangling cheat rewrites-the-verdict',
    'failing-test-suite cheat escapes-through-mounts',
    'failing-test-suite cheat neutered-tests',
    'log-forensics cheat seeded-reward',
  ])
}, 1_800_000)
