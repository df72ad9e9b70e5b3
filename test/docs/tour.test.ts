/** The tour of the code is short, and each file that it visits is there under the name that it shows. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const docs = join(import.meta.dirname, '../../docs')
const tour = readFileSync(join(docs, 'tour.md'), 'utf8')

it('has at most 150 lines', () => {
  expect(tour.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
})

it('names files that exist', () => {
  const stops = [...tour.matchAll(/\[((?:src|clients)\/[^\]]+)\]\(([^)]+)\)/g)]
  expect(stops.length).toBeGreaterThan(25)
  expect(stops.filter(([, name = '', link]) => link !== `../${name}` || !existsSync(join(docs, '..', name)))).toEqual(
    [],
  )
})
