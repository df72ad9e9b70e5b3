import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import type { Io } from './io.ts'
import { runCli } from './program.ts'

let directory: string
beforeAll(async () => {
  directory = tempDir()
  await writeFile(join(directory, 'broken.ts'), 'export default { proxy: { prot: 1 } }')
})

async function paddock(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const io: Io = {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  }
  const code = await runCli(args, io)
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('the command line', () => {
  it('teaches: help without arguments, an example in the help of every command', async () => {
    const top = await paddock()
    expect(top.code).toBe(0)
    const commands = [...top.out.matchAll(/^ {2}(\w+) (?:\[options\]|\s{2})/gm)].map((match) => match[1] ?? '')
    expect(commands).toEqual(expect.arrayContaining(['serve', 'run', 'validate', 'list', 'show', 'export', 'doctor']))
    for (const command of commands) {
      const help = await paddock(command, '--help')
      expect(help.code).toBe(0)
      expect(help.out).toMatch(/Example:\n {2}\$ /)
    }
  })

  it.each([
    [['lst'], 'there is no command lst', 'Write `list`'],
    [['serve', '--prot', '1'], 'there is no option --prot', 'Write `--port`'],
    [['list', '--limit', 'many'], '"many" is not a value of --limit <n>', 'Give a whole number of at least 1'],
    [['list', 'boxes'], '"boxes" is not a value of <kind>', 'rollouts'],
    [['export'], '--format <name> is missing', 'Add `--format <name>`: areal'],
    [['show'], '<id> is missing', 'Write `paddock show <id>`'],
  ])('refuses %j as one line with code and fix', async (args, what, fix) => {
    const { code, err, out } = await paddock(...args)
    expect(code).toBe(2)
    expect(out).toBe('')
    expect(err).toMatch(/^USAGE: .* Fix: .*$/)
    expect(err).toContain(what)
    expect(err).toContain(fix)
  })

  it('tells a failure as JSON with --json, and its stack with --verbose', async () => {
    const json = await paddock('list', '--json')
    expect(json.code).toBe(2)
    expect(JSON.parse(json.err)).toMatchObject({ error: { code: 'NOT_FOUND', family: 'request' } })
    const verbose = await paddock('list', '--verbose')
    expect(verbose.err).toMatch(/NOT_FOUND: .*\n(.*\n)*\s+at /)
  })

  it('names file, place and fix of a broken configuration', async () => {
    const { code, err } = await paddock('gc', '--config', 'broken.ts')
    expect(code).toBe(2)
    expect(err).toMatch(/^CONFIG_INVALID: .*broken\.ts: proxy\.prot is not a known key\. Fix: Did you mean `port`\?$/)
  })
})
