/** Applications and importers of gui are leaves: the linter says so of one import, this of all of them, dynamic ones too. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const leaves = ['apps', 'importers'].flatMap((kind) =>
  readdirSync(join(root, 'src/envs/gui', kind), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [`src/envs/gui/${kind}/${entry.name}`] : [],
  ),
)
const sources = globSync('src/**/*.ts', { cwd: root }).filter((path) => !/\.(test|fixture)\.ts$/.test(path))

/** What a file imports, in whatever way: paths of the repository, and names of packages. */
function importsOf(path: string): readonly string[] {
  const text = readFileSync(join(root, path), 'utf8').replaceAll(/^\s*\/?\*.*$/gm, '')
  return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"`]([^'"`]+)['"`]/g)].map(([, from = '']) =>
    from.startsWith('.') ? relative(root, resolve(root, dirname(path), from)) : from,
  )
}

it('nothing imports an application or an importer but src/builtin, which registers each of them', () => {
  const into = (path: string) => importsOf(path).filter((to) => leaves.some((leaf) => to.startsWith(`${leaf}/`)))
  const outside = sources.filter((path) => !leaves.some((leaf) => path.startsWith(`${leaf}/`)))
  const importing = outside.filter((path) => into(path).length > 0)
  expect(importing).toEqual(['src/builtin/gui.ts'])
  expect(into('src/builtin/gui.ts').toSorted()).toEqual(leaves.map((leaf) => `${leaf}/index.ts`).toSorted())
})

it.each(leaves)('%s imports its own files, packages and the environment kit alone', (leaf) => {
  const own = sources.filter((path) => path.startsWith(`${leaf}/`))
  const imports = own.flatMap(importsOf)
  expect(imports).toContain('src/kits/environment.ts')
  const inside = imports.filter((to) => to.startsWith('src/') && to !== 'src/kits/environment.ts')
  expect(inside.filter((to) => !to.startsWith(`${leaf}/`))).toEqual([])
  expect(imports.filter((to) => to.startsWith('paddock-rl') || to.startsWith('..'))).toEqual([])
})
