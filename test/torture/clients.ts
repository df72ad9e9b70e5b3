/** What the tests of published agent frameworks share: one task of four steps, and what must be recorded of it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { script, startEngine, startProxy } from '../proxy/support.ts'
import { expectFaithful, rows } from '../splice/support.ts'

const model = 'scripted-hermes'
const prompt = 'Tidy the house.'
const last = 'It is tidy, “all of it”.'
const steps = [
  { say: 'First I look.' },
  { shell: 'echo "a b"' },
  { parallel: [{ shell: "printf '%s\\n' 1.0" }, { shell: 'echo ünï 漢字 🙂' }] },
  { shell: 'ls -a | head -3' },
  { say: last },
]

/** A program that is to do the task; it prints the last answer in its last line. */
interface Client {
  readonly command: string
  readonly args: readonly string[]
  readonly dialect: string
}

/** Runs a program in a folder; fails with what it said. */
async function ranIn(
  cwd: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${code}\n${out}\n${err}`)
  return out
}

/**
 * The folder of packages that are installed once, and used again by every checkout while `what` is the same: below
 * PADDOCK_CLIENTS_CACHE (default ~/.cache/paddock/clients). `install` puts them into a folder that takes its name when it
 * is whole.
 */
export async function installed(
  what: unknown,
  install: (ran: (command: string, ...args: readonly string[]) => Promise<string>, folder: string) => Promise<unknown>,
): Promise<string> {
  const cache = process.env['PADDOCK_CLIENTS_CACHE'] ?? join(homedir(), '.cache/paddock/clients')
  const place = join(cache, createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, 16))
  if (existsSync(place)) return place
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(`${place}.`)
  try {
    await install((command, ...args) => ranIn(folder, command, args), folder)
    // Another checkout may have been faster.
    await rename(folder, place).catch((error: unknown) => {
      if (!existsSync(place)) throw error
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return place
}

/** A Python that has these packages, and `alone` without what those ask for. */
export async function installedPython(packages: readonly string[], alone: readonly string[] = []): Promise<string> {
  const python = await ranIn('.', 'python3', ['--version'])
  const pip = ['install', '--quiet', '--disable-pip-version-check']
  const place = await installed({ python, packages, alone }, async (ran) => {
    await ran('python3', '-m', 'venv', '.')
    await ran('bin/pip', ...pip, ...packages)
    if (alone.length > 0) await ran('bin/pip', ...pip, '--no-deps', ...alone)
  })
  return join(place, 'bin/python')
}

/** An engine with the task, a proxy before it, and a folder for clients. */
export async function startClients() {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-sdk-'))
  const engine = await startEngine('--model', model)
  const paddock = await startProxy(engine.url)
  await engine.control('/scripts', script(prompt, steps))

  /** Each prompt extends the one before, in one row, under strategy `auto`. */
  async function expectExtended({ command, args, dialect }: Client): Promise<void> {
    const session = await paddock.open({ policy: { strategy: 'auto', model } })
    const root = session.url.replace(/\/v1$/, '')
    const out = await ranIn(directory, command, args, {
      PATH: process.env['PATH'],
      HOME: directory,
      ROOT: root,
      GOOGLE_GEMINI_BASE_URL: root,
      KEY: session.key,
      MODEL: dialect === 'messages' ? 'claude-opus-4-5' : model,
      PROMPT: prompt,
    })
    // Some log to their output before.
    expect(out.trim().split('\n').at(-1)).toBe(last)
    const log = await session.log()
    const main = log.calls.filter(({ intent }) => intent.callClass === 'main')
    expect(new Set(main.map(({ intent }) => intent.dialect))).toEqual(new Set([dialect]))
    expect(new Set(main.map(({ intent }) => intent.strategy))).toEqual(new Set(['splice']))
    expect(main).toHaveLength(4)
    expect(main.flatMap(({ commit }) => commit?.forks ?? [])).toEqual([])
    expect(main.flatMap(({ commit }) => commit?.findings ?? [])).toEqual([])
    expect(
      rows({ ...log, segments: log.segments.filter(({ callId }) => main.some(({ intent }) => intent.id === callId)) }),
    ).toBe(1)
    await expectFaithful(log, engine)
  }

  return {
    directory,
    expectExtended,
    async [Symbol.asyncDispose]() {
      await paddock[Symbol.asyncDispose]()
      await engine.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
