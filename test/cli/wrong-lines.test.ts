import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { paddock } from './here.ts'
import { wrongLines } from './wrong-lines.ts'

/** The fixes of codes in general, which leave the way to the reader. */
const generic = ['Run the command with --help.', 'report the stack', 'Check the id;', 'See the cause;']

let dir: string
let words: Readonly<Record<string, string>>

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'paddock-wrong-'))
  const here = { cwd: dir }
  await paddock(['quickstart', '--data', 'store'], {}, here)
  await paddock(['export', '--format', 'jsonl', '--out', 'exported', '--data', 'store'], {}, here)
  const listed = async (kind: string) => {
    const { out } = await paddock(['list', kind, '--json', '--data', 'store'], {}, here)
    const rows = (JSON.parse(out) as Record<string, readonly Record<string, string>[]>)[kind] ?? []
    return rows[0] ?? {}
  }
  const session = await listed('sessions')
  const [run, group] = [await listed('runs'), await listed('groups')]
  words = {
    dir,
    long: 'x'.repeat(300),
    session: session['id'] ?? '',
    rollout: session['rolloutId'] ?? '',
    run: run['id'] ?? '',
    group: group['id'] ?? '',
  }
  await mkdir(join(dir, 'empty'))
  await mkdir(join(dir, 'full'))
  await writeFile(join(dir, 'full', 'x.txt'), 'x')
  await writeFile(join(dir, 'file.txt'), 'hello\n')
  await symlink('loop', join(dir, 'loop'))
}, 120_000)

afterAll(async () => {
  await rm(dir, { recursive: true, force: true })
})

function filled(text: string): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => words[name] ?? whole)
}

describe('a wrong command line', () => {
  let right = 0

  it.for(wrongLines)('$line', async ({ line, code, says, fix }) => {
    const parts = filled(line).split(' ')
    const from = parts.findIndex((part) => !/^[A-Z_]+=/.test(part))
    const env = Object.fromEntries(parts.slice(0, from).map((part) => part.split('=') as [string, string]))
    const { code: exit, out, err } = await paddock(parts.slice(from), env, { cwd: dir })
    const told = err.split('\n').find((one) => one.startsWith(`${code}: `)) ?? `${exit}: ${out}${err}`
    const [what = '', advice = ''] = told.split('. Fix: ')
    expect(told).toContain(`${code}: `)
    expect(what).toContain(filled(says))
    expect(advice).toContain(filled(fix))
    for (const text of generic) expect(advice).not.toContain(text)
    expect(exit).toBe(code === 'ENGINE_UNREACHABLE' ? 4 : 2)
    right += 1
  })

  it('is answered with the code, the place and the fix, in at least 95 of 100', () => {
    process.stdout.write(`wrong command lines: ${right} of ${wrongLines.length} answered right\n`)
    expect(right / wrongLines.length).toBeGreaterThanOrEqual(0.95)
  })
})
