/**
 * A stranger types what is printed: each command of README and of the first look, in a fresh clone and in the project that the guide
 * makes of the packed package, and each next step that `quickstart` prints, one after the other and as printed.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Commands that do not end unasked: when they say how they are ended, they are. */
const lasting = /^(?:\S*paddock|npx paddock)(?: --data \S+)? (?:serve|view|coordinator)\b/

/** Commands that are not typed here, and why. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^\.\/check\b/, 'CI runs it'],
  [/<[a-z-]+>|…/, 'the reader has to put a value in'],
  [/--learn\b|--model small\b/, 'fetches a model; scripts/quickstart-*.ts have their own tests'],
  [/^ENGINE_URL=http:\/\/gpu/, 'needs a GPU'],
]

let directory: string
let env: NodeJS.ProcessEnv
const typed: string[] = []
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'paddock-printed-'))
  // Nothing of this checkout but its Node: a `paddock` on the PATH would be found before what is typed.
  symlinkSync(process.execPath, join(directory, 'node'))
  const own = (process.env['PATH'] ?? '').split(delimiter).filter((path) => !path.includes('node_modules'))
  const { PADDOCK_DATA: _data, ENGINE_URL: _engine, NODE_COMPILE_CACHE: _cache, ...others } = process.env
  env = { ...others, PATH: [directory, ...own].join(delimiter) }
  expect(spawnSync('git', ['clone', '--quiet', root, 'clone'], { cwd: directory })).toMatchObject({ status: 0 })
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** The blocks of a page that are commands, by lines. */
function blocksOf(page: string): readonly (readonly string[])[] {
  return [...page.matchAll(/^```(?:console|sh)\n(.*?)^```$/gms)].map(([, block = '']) => block.trim().split('\n'))
}

/** The next steps in what a command printed: lines that begin with the program, as it was called. */
function stepsOf(out: string, called: string): readonly string[] {
  const escaped = called.replaceAll(/[.]/g, '\\.')
  return [...out.matchAll(new RegExp(`^ {2}(${escaped} .*?)(?: {2,}.*)?$`, 'gm'))].map(([, line = '']) => line)
}

interface Place {
  cwd: string
  /** What was exported so far. */
  readonly env?: NodeJS.ProcessEnv
}

/** A `serve` in another terminal, and what it tells the reader to export. */
async function startServe(cwd: string) {
  const child = spawn('./paddock', ['serve'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const exported: NodeJS.ProcessEnv = {}
  for await (const line of createInterface({ input: child.stdout })) {
    const [, name, value] = /^ {2}export (\w+)=(.*)$/.exec(line) ?? []
    if (name !== undefined) exported[name] = value
    if (line.includes('Ctrl-C ends')) break
  }
  child.stdout.resume()
  const stop = async (): Promise<void> => {
    child.kill('SIGINT')
    await exited
  }
  return { exported, [Symbol.asyncDispose]: stop }
}

/** Types lines into one shell after the other, each where the one before left it. Gives what they printed. */
async function type(lines: readonly string[], place: Place): Promise<string> {
  let all = ''
  for (const line of lines) {
    const reason = elsewhere.find(([command]) => command.test(line))
    if (reason !== undefined) continue
    typed.push(line)
    const child = spawn('sh', ['-c', `${line}\ncode=$?; pwd >&3; exit $code`], {
      cwd: place.cwd,
      env: { ...env, ...place.env },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    const [, , , where] = child.stdio
    let out = ''
    let cwd = ''
    let asked = false
    const take = (chunk: Buffer): void => {
      out += chunk.toString()
      if (asked || !lasting.test(line) || !/Ctrl-C ends/.test(out)) return
      asked = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
    }
    child.stdout?.on('data', take)
    child.stderr?.on('data', take)
    where?.on('data', (chunk: Buffer) => (cwd += chunk.toString()))
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    if (lasting.test(line))
      expect({ line, asked, ended: code === 0 || signal === 'SIGINT' || code === 130 }, out).toEqual({
        line,
        asked: true,
        ended: true,
      })
    else expect({ line, code }, out).toEqual({ line, code: 0 })
    if (cwd !== '') place.cwd = cwd.trim()
    all += out
  }
  return all
}

it('what README prints works in a fresh clone, with what quickstart prints then', async () => {
  const place = { cwd: join(directory, 'clone') }
  const [first = [], second = [], ...others] = blocksOf(readFileSync(join(place.cwd, 'README.md'), 'utf8'))
  expect(first.some((line) => line.startsWith('./quickstart'))).toBe(true)
  expect(others).toEqual([])
  const out = await type(first, place)
  const steps = stepsOf(out.slice(out.lastIndexOf('\nNext')), './paddock')
  expect(steps.length, out).toBeGreaterThan(1)
  await type(steps, place)

  // The second block stands below "Start `./paddock serve`", and exports: the shell that it is pasted into stays.
  await using serving = await startServe(place.cwd)
  expect(Object.keys(serving.exported)).toEqual(expect.arrayContaining(['PADDOCK_CONTROL_URL', 'ENGINE_CONTROL']))
  expect(spawnSync('python3', ['-m', 'venv', join(directory, 'venv')]).status).toBe(0)
  const PATH = [join(directory, 'venv/bin'), env['PATH']].join(delimiter)
  await type([`set -e\n${second.join('\n')}`], { cwd: place.cwd, env: { ...serving.exported, PATH } })
})

it('what the first look prints works in the clone and in the project that it makes', async () => {
  const place = { cwd: join(directory, 'clone') }
  const lines = blocksOf(readFileSync(join(place.cwd, 'docs/guides/first-look.md'), 'utf8')).flat()
  const out = await type(lines, place)
  expect(place.cwd).toBe(join(directory, 'my-project'))
  const [inClone, inProject] = [stepsOf(out, './paddock'), stepsOf(out, 'npx paddock')]
  expect([inClone.length, inProject.length], out).toEqual([4, 4])
  // The guide has exported into the folder that the clone's step names.
  const again = inClone.map((line) => line.replace('--out out/rows', '--out out/again'))
  await type(again, { cwd: join(directory, 'clone') })
  await type(inProject, place)
})

it('typed more than the examples of one page', () => {
  console.log(typed.map((line) => `typed: ${line}`).join('\n'))
  expect(typed.length).toBeGreaterThan(12)
})
