/** Each file that a message or a page of the package names is in the package. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const npm = ['pack', '--dry-run', '--json', '--ignore-scripts']
const packed: ReadonlySet<string> = new Set(
  (JSON.parse(execFileSync('npm', npm, { cwd: root, encoding: 'utf8' })) as { files: { path: string }[] }[]).flatMap(
    ({ files }) => files.map(({ path }) => path),
  ),
)
const isPacked = (path: string): boolean => packed.has(path) || [...packed].some((one) => one.startsWith(`${path}/`))

it('each file that a message names', () => {
  const sources = execFileSync('git', ['ls-files', 'src/*.ts', 'bin'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
  const named = sources
    .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
      const names = /(?<![\w./-])(?:(?:docs|deploy|clients|bench|examples)\/[\w./-]*\w|(?:SECURITY|CONTRIBUTING)\.md)/g
      return [...text.matchAll(names)].map(([name]) => ({ path, name }))
    })
  expect(named.length).toBeGreaterThan(15)
  expect(named.filter(({ name }) => !isPacked(name))).toEqual([])
})

// The first pages also lead those who have the checkout: to tests that prove an answer, and to the pages about the code.
const firstPages = /^(?:README|CONTRIBUTING)\.md$/
const ofCheckout = /^(?:test\/|AGENTS\.md$|docs\/tour\.md$|docs\/extend\b)/

it('each file that a packed page links to', () => {
  const pages = [...packed].filter((path) => path.endsWith('.md') && !path.startsWith('dist/'))
  expect(pages.length).toBeGreaterThan(60)
  const broken = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8')
      .replaceAll(/^```.*?^```/gms, '')
      .replaceAll(/`[^`\n]*`/g, '')
    return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)\s]*)?\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => normalize(join(dirname(page), link)).replace(/\/$/, ''))
      .filter((path) => !isPacked(path) && !(firstPages.test(page) && ofCheckout.test(path)))
      .map((path) => `${page}: ${path}`)
  })
  expect(broken).toEqual([])
})

it('no file that is for the checkout alone', () => {
  expect([...packed].filter((path) => /\.test\.ts$|__pycache__|^(test|src|scripts)\//.test(path))).toEqual([])
  for (const path of ['docs/reference/config.md', 'SECURITY.md', 'deploy/systemd/paddock.service'])
    expect(existsSync(join(root, path)) && statSync(join(root, path)).isFile() && packed.has(path), path).toBe(true)
})
