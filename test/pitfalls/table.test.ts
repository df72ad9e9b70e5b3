import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')

it('every one of the 28 pitfalls is in the table, and the file that it names has a test that begins with its number', () => {
  const rows = [...read('docs/reference/pitfalls.md').matchAll(/^\| (\d\d) \|.*\| `([^`]+)` \|$/gm)]
  expect(rows.map(([, number]) => number)).toEqual(
    Array.from({ length: 28 }, (_, at) => String(at + 1).padStart(2, '0')),
  )
  const missing = rows.filter(([, number = '', file = '']) => {
    const title = new RegExp(
      `(?:it|test|describe)\\b[^;]{0,600}?['"\`]pitfall (?:\\d\\d and )?${number}(?: and \\d\\d)?: `,
      's',
    )
    return !title.test(read(file))
  })
  expect(missing.map(([row]) => row)).toEqual([])
})
