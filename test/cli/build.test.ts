/** What npm ships: compiled, with the engine's files beside it, run from another directory. */
import { spawnSync } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const directory = tempDir()

it('npm run build makes a program that starts its engine', () => {
  const built = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], { encoding: 'utf8' })
  expect(built.stdout).toBe('')
  expect(built.status).toBe(0)
  const ran = spawnSync(join(root, 'bin/paddock.cjs'), ['doctor', '--no-docker', '--json'], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` },
  })
  expect(ran.stderr).toBe('')
  const { findings } = JSON.parse(ran.stdout) as { findings: { about: string; status: string; what: string }[] }
  expect(findings).toContainEqual({ about: 'engine', status: 'ok', what: 'gives token ids, logprobs, tool calls' })
})

it('the compiled program makes an environment that loads and knows its types', async () => {
  const main = join(root, 'bin/paddock.cjs')
  const options = { cwd: directory, encoding: 'utf8' } as const
  expect(spawnSync(process.execPath, [main, 'env', 'new', 'mine'], options)).toMatchObject({ status: 0, stderr: '' })
  const plugin = join(directory, 'mine/environment.ts')
  const types = /from '(.*\/src\/kits\/environment\.js)'/.exec(await readFile(plugin, 'utf8'))?.[1] ?? ''
  await access(join(directory, 'mine', types.replace(/\.js$/, '.d.ts')))
  // The examples come with the package, wherever one stands; these are no tasks of that environment.
  const shipped = ['validate', 'examples/tasks/sql', '--env', './mine/environment.ts']
  expect(spawnSync(process.execPath, [main, ...shipped], options).stderr).toContain(
    'Validating 7 tasks of examples/tasks/sql',
  )
  // The tasks stand where no task is, which only a loaded environment can say.
  const nowhere = spawnSync(process.execPath, [main, 'validate', 'nowhere', '--env', './mine/environment.ts'], options)
  expect(nowhere).toMatchObject({ status: 2, stderr: expect.stringMatching(/^TASK_INVALID/) })
})
