/** Links between pages lead to a file that is there, and to a heading that it has. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n')

/** As GitHub names a heading: lower case, signs left out, blanks as dashes, the second of equal ones with a number. */
function anchorsOf(page: string): ReadonlySet<string> {
  const found = new Map<string, number>()
  const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```/gms, '')
  const slugs = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => {
    const words = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase()
    const slug = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-')
    const times = found.get(slug) ?? 0
    found.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  })
  return new Set([...slugs, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)])
}

it('no link of a page is broken', () => {
  const broken: string[] = []
  let links = 0
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
      .replaceAll(/^```.*?^```/gms, '')
      .replaceAll(/`[^`\n]*`/g, '')
    for (const [, path = '', anchor] of text.matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      if (/^[a-z]+:/.test(path) || (path === '' && anchor === undefined)) continue
      links += 1
      const target = path === '' ? join(root, page) : resolve(root, dirname(page), path)
      const isBroken =
        !existsSync(target) || (anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor))
      if (isBroken) broken.push(`${page}: ${relative(root, target)}${anchor === undefined ? '' : `#${anchor}`}`)
    }
  }
  expect(links).toBeGreaterThan(300)
  expect(broken).toEqual([])
})
