import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parts } from '../torture/mutants.ts'

/** The mutants are run by the torture; that they can still be made is seen here, where their sources change. */
describe.each(parts)('mutants of the $part', ({ file, mutants }) => {
  it('stand in the source, each in one place', async () => {
    const source = await readFile(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')
    expect(mutants.filter(({ from }) => source.split(from).length !== 2).map(({ name }) => name)).toEqual([])
  })
})
