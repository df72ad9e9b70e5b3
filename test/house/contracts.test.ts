/** No built-in is left out of the suite of its kind. Exporters, rewards, harnesses and sandboxes are looped over where their suites run. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { environmentRegistry } from '../../src/builtin/index.ts'

const root = join(import.meta.dirname, '../..')

/** Texts of all tests below a folder. */
async function testsOf(folder: string): Promise<string> {
  const names = await readdir(join(root, folder), { recursive: true })
  const files = names.filter((name) => name.endsWith('.test.ts'))
  return (await Promise.all(files.map((name) => readFile(join(root, folder, name), 'utf8')))).join('\n')
}

it('every environment that Paddock brings, and each that it makes of others, runs the suite of environments', async () => {
  const { names } = await environmentRegistry()
  expect(names.length).toBeGreaterThan(3)
  const made = (await readdir(join(root, 'src/envs'))).filter((name) =>
    ['openenv', 'verifiers', 'nemo-gym'].includes(name),
  )
  const left: string[] = []
  for (const name of [...names, ...made]) {
    if (!(await testsOf(`src/envs/${name}`)).includes('environmentContract(')) left.push(name)
  }
  expect(left).toEqual([])
})

it('every engine that a configuration can name runs the suite of engines', async () => {
  const schema = await readFile(join(root, 'src/config/schema.ts'), 'utf8')
  const kinds = [...(/\.enum\(\['auto', (.*?)\]\)/.exec(schema)?.[1] ?? '').matchAll(/'(\w+)'/g)].map(
    ([, kind]) => kind,
  )
  expect(kinds.length).toBeGreaterThan(3)
  const suite = await readFile(join(root, 'test/engines/contract.test.ts'), 'utf8')
  const fixtures = suite.slice(suite.indexOf('const fixtures'), suite.indexOf('for (const [fixture'))
  for (const kind of kinds) expect(fixtures).toContain(`${kind}Engine({ url`)
})
