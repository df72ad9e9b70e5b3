import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { controlToken, tokenFileName } from './control-token.ts'

const token = /^[\w-]{43}$/

it('is made once by the first of several, and only its owner can read it', async () => {
  const directory = tempDir()
  const all = await Promise.all(Array.from({ length: 20 }, async () => controlToken(directory)))
  expect(new Set(all).size).toBe(1)
  expect(all[0]).toMatch(token)
  expect(statSync(join(directory, tokenFileName)).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual([tokenFileName])
})

it.each(['', '\n', '  \n'])('is made in place of a file that a power loss left as %j', async (left) => {
  const directory = tempDir()
  writeFileSync(join(directory, tokenFileName), left, { mode: 0o600 })
  const made = await controlToken(directory)
  expect(made).toMatch(token)
  expect(await controlToken(directory)).toBe(made)
  expect(readFileSync(join(directory, tokenFileName), 'utf8')).toBe(`${made}\n`)
})
