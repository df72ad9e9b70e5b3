/** An environment that somebody published: packed, installed into a project, and used by its npm name. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './paddock.ts'

const run = promisify(execFile)
const example = join(import.meta.dirname, '../../examples/environments/receipts')
let directory: string
beforeAll(async () => {
  directory = tempDir()
  const source = join(directory, 'source')
  const project = join(directory, 'project')
  await mkdir(source)
  await mkdir(project)
  const manifest = { name: 'paddock-receipts', version: '1.2.3', type: 'module', main: 'environment.js' }
  await writeFile(
    join(source, 'package.json'),
    JSON.stringify({ ...manifest, exports: { import: './environment.js' } }),
  )
  // Node strips no types below node_modules: what is published is JavaScript.
  const code = stripTypeScriptTypes(await readFile(join(example, 'environment.ts'), 'utf8'))
  await writeFile(join(source, 'environment.js'), code)
  await cp(join(example, 'tasks'), join(source, 'tasks'), { recursive: true })
  const packed = await run('npm', ['pack', '--silent'], { cwd: source })
  await writeFile(join(project, 'package.json'), '{"private":true}')
  const tarball = join(source, packed.stdout.trim().split('\n').at(-1) ?? '')
  await run('npm', ['install', '--silent', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project })
})

test('is found from the project, proves its own tasks, and is missed by name elsewhere', async () => {
  const project = join(directory, 'project')
  const tasks = join(project, 'node_modules/paddock-receipts/tasks')
  const config = join(project, 'paddock.config.ts')
  await writeFile(config, "export default { environments: ['paddock-receipts'] }\n")
  const proven = await paddock(['validate', tasks, '--env', 'receipts', '--config', config, '--json'])
  expect(proven.code).toBe(0)
  const rows = proven.out
    .trim()
    .split('\n')
    .slice(0, -1)
    .map((line): { status: string } => JSON.parse(line))
  expect(rows.length).toBeGreaterThan(0)
  expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['proven']))
  await writeFile(config, "export default { environments: ['paddock-nowhere'] }\n")
  const missed = await paddock(['validate', tasks, '--env', 'receipts', '--config', config])
  expect(missed.code).toBe(2)
  expect(missed.err).toMatch(/ENVIRONMENT_INVALID.*npm install paddock-nowhere/)
})
