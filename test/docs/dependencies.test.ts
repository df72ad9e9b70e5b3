import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

it('the package brings what the scripted engine needs, in the same versions', () => {
  const { dependencies } = JSON.parse(read('package.json'))
  const { dependencies: own } = JSON.parse(read('engine/package.json'))
  expect(Object.keys(own).length).toBeGreaterThan(0)
  expect(dependencies).toMatchObject(own)
})

it('docs/dependencies.md gives a reason for each dependency, and for nothing else', () => {
  const listed = new Set([...read('docs/dependencies.md').matchAll(/`([^`]+)`/g)].map(([, name]) => name))
  const declared = ['package.json', 'engine/package.json', 'web/package.json'].flatMap((path) => {
    const {
      dependencies = {},
      devDependencies = {},
      optionalDependencies = {},
      peerDependencies = {},
    } = JSON.parse(read(path))
    return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies })
  })
  const named = declared.map((name) => (name.startsWith('@types/') ? '@types/*' : name))
  expect(named.filter((name) => !listed.has(name))).toEqual([])
  const known = new Set([
    ...named,
    'package.json',
    'engine/package.json',
    'engine/',
    'web/',
    'dist/web',
    'dist/vendor/dockerode.cjs',
    'ssh://',
    'tsc',
    'dispatch',
    'task.toml',
    '--help',
    'paddock-rl/testing',
    'scripts/house',
  ])
  expect([...listed].filter((name) => !known.has(name ?? ''))).toEqual([])
})
