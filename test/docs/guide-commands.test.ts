/**
 * The commands of the guides: each block marked `sh` is run, page by page and in order, in a shell that has what the page told
 * its reader to set: the variables that `./paddock serve` printed, with the scripted engine behind it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = ['README.md', ...readdirSync(join(root, 'docs/guides')).map((name) => `docs/guides/${name}`)].map(
  (page) => ({ page, blocks: blocksOf(readFileSync(join(root, page), 'utf8')) }),
)
const withCommands = pages.filter(({ blocks }) => blocks.length > 0)

let serving: ChildProcess | undefined
afterEach(async () => {
  if (serving !== undefined && serving.exitCode === null) {
    const ended = once(serving, 'exit')
    serving.kill('SIGINT')
    await ended
  }
  serving = undefined
})

function blocksOf(text: string): readonly string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/** The shell of a reader who has started `./paddock serve` beside it. */
async function readersShell(): Promise<NodeJS.ProcessEnv> {
  const directory = tempDir()
  const own = { PADDOCK_DATA: join(directory, 'data'), PADDOCK_PORT: '0', PADDOCK_CONTROL_PORT: '0', ENGINE_URL: '' }
  const env = { ...process.env, ...own }
  serving = spawn('./paddock', ['serve'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const { stdout } = serving
  if (stdout === null) throw new Error('serve has no output')
  const exports: Record<string, string> = {}
  for await (const line of createInterface({ input: stdout })) {
    const [, name, value] = /^ {2}export (\w+)=(.*)$/.exec(line) ?? []
    if (name !== undefined && value !== undefined) exports[name] = value
    if (line.includes('Ctrl-C ends')) {
      stdout.resume()
      return { ...env, ...exports }
    }
  }
  throw new Error('paddock serve ended before it was ready')
}

it('there are pages with commands', () => {
  expect(withCommands.map(({ page }) => page)).toContain('docs/guides/point-your-harness-at-paddock.md')
})

it.each(withCommands)('the commands of $page run, and the engine knows what to do', async ({ blocks }) => {
  const env = await readersShell()
  const script = blocks.join('\n')
  const child = spawn('/bin/sh', ['-eu', '-c', script], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const [code] = await once(child, 'close')
  expect(code, out).toBe(0)
  expect(out).not.toMatch(/scripted engine/)
})
