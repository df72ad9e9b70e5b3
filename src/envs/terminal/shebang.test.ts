import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { scriptCommand } from './shebang.ts'

const root = tempDir()

it.each([
  ['an interpreter by its path, with its option', '#!/bin/sed s/word/read/\na word\n', 'a read'],
  ['one that env looks for', '#!/usr/bin/env cat\nword\n', '#!/usr/bin/env cat\nword'],
  ['one behind env -S, with its options', '#! /usr/bin/env -S sh -u\necho "${UNSET-u}"\n', 'u'],
  ['bash, where there is no such line', '[[ a == a ]] && echo bash "${0##*/}"', 'bash script'],
  ['bash, where the interpreter is not there', '#!/opt/none/bin/python3\n[[ a == a ]] && echo bash\n', 'bash'],
  ['bash, where env would not find it', '#!/usr/bin/env no-such-program\n[[ a == a ]] && echo bash\n', 'bash'],
  ['bash, where the line is empty', '#!\n[[ a == a ]] && echo bash\n', 'bash'],
  ['no pattern of the line as files', '#!/bin/sh -*\necho never\n', null],
])('a script is run by %s', async (_, text, said) => {
  const path = join(root, 'script')
  await writeFile(path, text, { mode: 0o600 })
  const [program = '', ...args] = scriptCommand(path)
  const output = await promisify(execFile)(program, args, { cwd: root }).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  )
  if (said === null) expect(output).toBeNull()
  else expect(output).toContain(said)
})
