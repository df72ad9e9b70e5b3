/** The counts of `scripts/house`, and the baseline that `./check --fast` holds them to. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readBaseline } from '../../scripts/counting/baseline.ts'
import { countsOf } from '../../scripts/counting/counts.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'paddock-counts-'))
  mkdirSync(join(root, 'test/house'), { recursive: true })
  mkdirSync(join(root, 'src/core'), { recursive: true })
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const write = (path: string, text: string): void => writeFileSync(join(root, path), text)
const baseline = (): string => readFileSync(join(root, 'test/house/baseline.txt'), 'utf8')

function house(...args: readonly string[]): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(resolve('scripts/house'), ['--root', root, ...args], {
    encoding: 'utf8',
  })
  return { code: status, text: stdout + stderr }
}

function git(...args: readonly string[]): void {
  const own = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']
  expect(spawnSync('git', [...own, ...args], { cwd: root, encoding: 'utf8' })).toMatchObject({ status: 0 })
}

const value = (key: string): number | undefined => countsOf(root).find((count) => count.key === key)?.value

describe('scripts/house --check', () => {
  it('is red for a count that rose, names the files, and is green again with a reason in the baseline', () => {
    // Past its target, so that the baseline holds it.
    const longFile = Array.from({ length: 700 }, (_, at) => `export const a${at} = ${at}`).join('\n')
    write('src/core/long.ts', longFile)
    git('init', '-q')
    expect(house('--lower')).toEqual({ code: 0, text: '' })
    git('add', '.')
    git('commit', '-q', '-m', 'a')
    expect(house('--check')).toEqual({ code: 0, text: '' })

    write('src/core/long.ts', `${longFile}\nexport const one = 1\nexport const two = 2\n`)
    const red = house('--check')
    expect(red.code).toBe(1)
    expect(red.text).toContain('src.longest is 702, 2 over its limit 700')
    expect(red.text).toContain('src/core/long.ts +2')
    expect(red.text).toContain('scripts/house --raise')

    expect(house('--raise', 'two more constants')).toEqual({ code: 0, text: '' })
    expect(baseline()).toContain('\nsrc.longest 700\nsrc.longest +2 two more constants\n')
    expect(house('--check')).toEqual({ code: 0, text: '' })

    write('src/core/long.ts', longFile)
    expect(house('--check')).toMatchObject({ code: 0, text: expect.stringContaining('src.longest 702 -> 700') })
    house('--lower')
    expect(baseline()).not.toContain('two more constants')
  })

  it('takes no reason for a banned word', () => {
    house('--lower')
    // In two halves: this file has none either.
    write('src/core/a.ts', `// Makes it ${'an'}${'ew'}.\nexport const a = 1\n`)
    expect(house('--check')).toMatchObject({ code: 1, text: expect.stringContaining('src/core/a.ts:1') })
    expect(house('--raise', 'because')).toMatchObject({ code: 1, text: expect.stringContaining('in other words') })
  })

  it('is red for a line that is no count, and for one without a reason', () => {
    house('--lower')
    for (const line of ['src.lines +3', 'src.lines many', 'src.lines -3 fewer']) {
      const kept = baseline()
      appendFileSync(join(root, 'test/house/baseline.txt'), `${line}\n`)
      expect(house('--check')).toMatchObject({ code: 1, text: expect.stringContaining(line) })
      write('test/house/baseline.txt', kept)
    }
  })
})

it('adds up what two branches raised, and takes the higher of two counts that a merge left', () => {
  const { base, raises } = readBaseline('a 9\na +1 x\na 7\na +2 y\n').get('a') ?? {}
  expect([base, raises?.map(({ amount }) => amount)]).toEqual([9, [1, 2]])
})

describe('counts', () => {
  it('counts lines without comments and blanks, and tokens whatever the format', () => {
    write('src/core/a.ts', '/** Says. */\nexport const a = `x ${1}`\n\n// no\nconst b = /a b/ // c\n')
    expect([value('src.lines'), value('src.tokens')]).toEqual([2, 11])
    write('src/core/a.ts', 'export\nconst a =\n`x ${1}`; const b = /a b/')
    expect([value('src.lines'), value('src.tokens')]).toEqual([3, 12])
  })

  it('counts cognitive complexity as its inventor does', () => {
    const sum = `function sum(max: number) { // 7 in the paper's example
      let total = 0
      OUT: for (let i = 1; i <= max; ++i) {
        for (let j = 2; j < i; ++j) {
          if (i % j === 0) continue OUT
        }
        total += i
      }
      return total
    }`
    const tangled = `${sum.replace('return total', 'if (max && total && max || total) return 1; else if (max) return 2; else return 3')}`
    // 7, and if 1, a run of && and one of || 2, else if 1, else 1, and three nested ternaries: 1 + 2 + 3.
    write(
      'src/core/a.ts',
      `${tangled.replace('let total', 'const t = max ? (max ? (max ? 1 : 2) : 3) : 4\nlet total')}`,
    )
    expect(countsOf(root).find(({ key }) => key === 'functions.large')?.parts[0]?.note).toContain('complexity 18')
    write('src/core/a.ts', sum)
    expect(value('functions.large')).toBe(0)
  })

  it('finds shapes that are alike across spellings and kinds, and types with one name', () => {
    write('src/core/a.ts', 'export interface A { callId: 1; two: 2; three: 3; four: 4; five: 5 }\ninterface B { a: 1 }')
    write('src/core/b.ts', 'const b = z.object({ call_id: 1, two: 2, three: 3, four: 4, six: 6 })\ntype B = string')
    expect([value('shapes.alike'), value('types.twice')]).toEqual([2, 1])
    write('src/core/b.ts', 'const b = z.object({ call_id: 1, two: 2, three: 3, five5: 4, six: 6 })\ntype C = string')
    expect([value('shapes.alike'), value('types.twice')]).toEqual([0, 0])
  })

  it('finds files with one importer, doc comments before doc comments, and tests', () => {
    write(
      'src/core/a.ts',
      '/** The file. */\n/** Of `a`. */\nexport const a = 1\n/** One. */\n/** Two. */\nconst b = a\n',
    )
    write('src/core/c.ts', "import { a } from './a.ts'\nexport const c = a\n")
    write('test/house/a.test.ts', "it('is', () => { expect(1).toBe(1) })\nit.each([1])('too', () => {})\n")
    expect(value('files.once')).toBe(1)
    expect(value('comments.doubled')).toBe(1)
    expect([value('tests.titles'), value('tests.expects'), value('src.files')]).toEqual([2, 1, 2])
  })
})
