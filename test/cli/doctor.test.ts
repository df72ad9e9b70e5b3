/** `paddock doctor` looks at what `paddock serve` in the same folder would start with. */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { runCli } from '../../src/cli/program.ts'
import { startScriptedEngine } from '../../src/cli/scripted.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

let directory: string
beforeEach(() => {
  directory = tempDir()
})

interface Finding {
  readonly about: string
  readonly status: string
  readonly what: string
}

async function paddock(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    status: () => undefined,
    env,
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

async function doctor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, out } = await paddock(['doctor', '--no-docker', '--json', ...args], env)
  const { findings } = JSON.parse(out) as { readonly findings: readonly Finding[] }
  return { code, findings, problems: findings.filter(({ status }) => status === 'problem') }
}

const config = (value: unknown, name = 'paddock.config.ts') =>
  writeFile(join(directory, name), `export default ${JSON.stringify(value)}\n`, { mode: 0o644 })

/** A port that refuses. */
const dead = 'http://127.0.0.1:9'

it.each([
  ['an unknown key', () => config({ run: { nonsense: 1 } }), [], 'run.nonsense'],
  ['no default export', () => writeFile(join(directory, 'paddock.config.ts'), '\n', { mode: 0o644 }), [], 'default'],
  ['a file that others can write', () => config({}).then(() => chmod(directory, 0o777)), [], 'can be written'],
  ['a file that is not there', () => Promise.resolve(), ['--config', 'other.ts'], 'other.ts'],
] as const)('calls it a problem that serve refuses the configuration: %s', async (_, write, args, named) => {
  await write()
  const refused = await paddock(['serve', ...args])
  expect(refused.code).toBe(2)
  const { code, findings, problems } = await doctor(args)
  expect(code).toBe(1)
  expect(problems).toEqual([
    expect.objectContaining({ about: 'config', what: expect.stringContaining(refused.err.split(':', 1)[0] ?? '') }),
  ])
  expect(problems[0]?.what).toContain(named)
  // The engine that is meant is not known, so none is asked.
  expect(findings.map(({ about }) => about)).not.toContain('engine')
})

it('calls a wrong variable a problem of the configuration too', async () => {
  const { code, problems } = await doctor([], { PADDOCK_PORT: 'many' })
  expect(code).toBe(1)
  expect(problems).toEqual([expect.objectContaining({ about: 'config', what: expect.stringContaining('proxy.port') })])
})

it('asks the engines of the configuration, of policies and of roles', async () => {
  await config({
    engine: { url: dead },
    policies: { solver: {}, critic: { engines: ['http://127.0.0.1:11'] } },
    engines: { judge: { url: 'http://127.0.0.1:13' }, teacher: { url: 'http://127.0.0.1:17' } },
  })
  const { code, problems } = await doctor([])
  expect(code).toBe(1)
  expect(problems.map(({ about, what }) => `${about} ${/127\.0\.0\.1:\d+/.exec(what)?.[0]}`)).toEqual([
    'engine 127.0.0.1:9',
    'engine 127.0.0.1:11',
    'judge 127.0.0.1:13',
    'teacher 127.0.0.1:17',
  ])
})

it('names an engine that a role has', async () => {
  await using engine = await startScriptedEngine({
    profile: 'scripted-hermes',
    seed: 0,
    journal: join(directory, 'journal.jsonl'),
  })
  await config({ engine: { url: [] }, engines: { user: { url: engine.url } } })
  const { code, findings } = await doctor([])
  expect(findings.find(({ about }) => about === 'user')).toMatchObject({
    status: 'ok',
    what: expect.stringContaining(engine.model),
  })
  // No engine yet is how it starts where a trainer names one.
  expect(findings.find(({ about }) => about === 'engine')).toMatchObject({ status: 'ok' })
  expect(code).toBe(0)
})

it('reads the file that --config names, its object store and its data directory, and none with --no-config', async () => {
  await config({ run: { nonsense: 1 } })
  await config(
    {
      store: { directory: 'elsewhere', catalogue: 'postgres://127.0.0.1:9/none' },
      blobs: { s3: { endpoint: dead, bucket: 'b' } },
      tls: { cert: 'none.pem', key: 'none.key' },
    },
    'named.ts',
  )
  const { findings, problems } = await doctor(['--no-engine', '--config', 'named.ts'])
  expect(problems.map(({ about }) => about)).toEqual(['catalogue', 'blobs', 'tls'])
  expect(findings.find(({ about }) => about === 'config')?.what).toBe(join(directory, 'named.ts'))
  expect(findings.find(({ about }) => about === 'data')?.what).toBe(join(directory, 'elsewhere'))
  expect(await doctor(['--no-engine', '--no-config'])).toMatchObject({ code: 0 })
})

it.each(['file.txt', 'file.txt/below'])('calls a data directory that is a file a problem: %s', async (data) => {
  await writeFile(join(directory, 'file.txt'), 'text')
  const { code, problems } = await doctor(['--no-engine', '--data', data])
  expect(code).toBe(1)
  expect(problems).toEqual([expect.objectContaining({ about: 'data', what: expect.stringContaining('file.txt') })])
})
