/** TAB in real shells; bash is asked in `test/cli/service.test.ts`. */
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

let directory: string

beforeAll(async () => {
  directory = tempDir()
  for (const shell of ['zsh', 'fish']) {
    const { code, out } = await paddock(['completion', shell])
    expect(code).toBe(0)
    await writeFile(join(directory, shell), out)
  }
})

const asked: readonly (readonly [line: string, words: readonly string[]])[] = [
  ['paddock to', ['token']],
  ['paddock token ', ['create', 'list', 'revoke']],
  ['paddock token create --role ', ['admin', 'annotate', 'node', 'trainer', 'view']],
  ['paddock view --ann', ['--annotate']],
  ['paddock list ', ['runs', 'rollouts', 'tasks']],
]

describe('completion', () => {
  it.each(asked)('of "%s" in fish', (line, words) => {
    const ask = `source ${join(directory, 'fish')}; complete -C '${line}'`
    const said = execFileSync('fish', ['--no-config', '-c', ask], { encoding: 'utf8' })
    expect(said.split('\n').map((one) => one.split('\t')[0])).toEqual(expect.arrayContaining([...words]))
  })

  it.each(asked)('of "%s" in zsh', (line, words) => {
    // A terminal of its own: zsh completes only where somebody types.
    const isTold = words.map((word) => `$said == *${word}*`).join(' && ')
    const ask = `
      zmodload zsh/zpty
      zpty shell zsh -f -i
      zpty -w shell "PS1='> '; source ${join(directory, 'zsh')}; print 'rea''dy'"
      zpty -r shell said '*ready*'
      zpty -n -w shell $'${line}\\t\\t'
      said=''
      until [[ ${isTold} ]]; do zpty -r shell one '?' || break; said+=$one; done
      print -r -- "$said"
      zpty -d shell`
    const said = execFileSync('zsh', ['-f', '-c', ask], { encoding: 'utf8' })
    for (const word of words) expect(said).toContain(word)
  })
})
