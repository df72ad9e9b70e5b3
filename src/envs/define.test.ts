import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { makeTask, PaddockError } from '../core/index.ts'
import { scored } from '../reward/index.ts'
import type { Box } from '../sandbox/index.ts'
import { packArtifact, unpackArtifact, withoutExcluded } from './artifacts.ts'
import { defineEnvironment, type EnvironmentSpec } from './define.ts'
import { shellTool } from './run-script.ts'
import { environmentRegistry } from '../builtin/index.ts'
import { defineTool, runToolCall } from './tool.ts'

const facts = { verifier: { id: 'riddle', version: '1', sha256: '0'.repeat(64) }, trust: 'host' as const }
const data = z.object({ answer: z.string() })
const spec: EnvironmentSpec<z.infer<typeof data>> = {
  name: 'riddle',
  apiVersion: 1,
  verifierVersion: '1',
  task: data,
  load: async () => [],
  box: () => ({
    image: { kind: 'paddock-base' },
    profile: 'user',
    workdir: '/workspace',
    user: null,
    env: {},
    network: 'none',
    agentTimeoutMs: null,
    verifyTimeoutMs: null,
  }),
  tools: () => [],
  collect: async () => ({ items: [] }),
  verify: async ({ task }) => scored(task.data.answer === '42' ? 1 : 0, facts),
  scripts: {
    oracle: async () => ({ name: 'oracle', weight: 1, script: { steps: [] } }),
    cheats: async () => [],
  },
}
const task = makeTask({
  name: 'one',
  environment: 'riddle',
  instruction: 'Answer.',
  split: 'train',
  data: { answer: '42' },
  source: 'nowhere',
})
const never = () => Promise.reject(new Error('not to be opened'))
const verification = { task, artifacts: { items: [] }, openBox: never, emit: () => undefined }

describe('defineEnvironment', () => {
  it('fills in what the author left out', async () => {
    const environment = defineEnvironment(spec)
    expect(environment.systemPrompt(task)).toBeNull()
    expect(environment.userPrompt(task)).toBe('Answer.')
    expect(await environment.scripts.solutions(task)).toEqual([])
    expect(environment.scripts.nullAgent.script.steps).toHaveLength(1)
    const signal = new AbortController().signal
    expect(await environment.verify({ ...verification, signal })).toMatchObject({ status: 'scored', reward: 1 })
  })

  it.each<[string, object, RegExp]>([
    ['a name with capitals', { name: 'Riddle' }, /name.*lower case/],
    ['another version of the contract', { apiVersion: 2 }, /apiVersion.*1/],
    ['no verify', { verify: undefined }, /verify.*function/],
    ['no schema', { task: {} }, /task.*zod/],
    ['no oracle', { scripts: { cheats: async () => [] } }, /scripts\.oracle.*function/],
  ])('names the part and the fix: %s', (_, change, says) => {
    const wrong = { ...spec, ...change }
    expect(() => defineEnvironment(wrong as typeof spec)).toThrow(PaddockError)
    try {
      defineEnvironment(wrong as typeof spec)
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENVIRONMENT_INVALID' })
      expect(error instanceof PaddockError ? error.line() : '').toMatch(says)
    }
  })

  it.each<[string, unknown, string]>([
    ['a fault of ours', new PaddockError('BOX_DEAD', 'gone'), 'infra_error'],
    ['a verifier that throws', new TypeError('undefined is not a function'), 'unscorable'],
    ['a wrong task', new PaddockError('TASK_INVALID', 'no'), 'unscorable'],
  ])('%s is no reward', async (_, thrown, status) => {
    const verify = () => Promise.reject(thrown)
    const signal = new AbortController().signal
    const verdict = await defineEnvironment({ ...spec, verify }).verify({ ...verification, signal })
    expect(verdict).toMatchObject({ status, reward: null, reason: expect.stringMatching(/./) })
  })

  it('weighs a script of plain objects 1, and names the script and the key that do not fit', async () => {
    // A plugin without types gives anything.
    const plain = (...given: readonly unknown[]) =>
      defineEnvironment({ ...spec, scripts: { ...spec.scripts, distractors: async () => given as never } })
    const nearly = { name: 'nearly', script: { steps: [{ say: '41' }] } }
    expect(await plain(nearly, { ...nearly, weight: -2 }).scripts.distractors(task)).toEqual([
      { ...nearly, weight: 1 },
      { ...nearly, weight: -2 },
    ])
    for (const [wrong, key] of [
      [{ ...nearly, weight: '1' }, 'weight'],
      [{ ...nearly, weight: Number.NaN }, 'weight'],
      [{ ...nearly, script: { steps: [{ sey: '41' }] } }, 'script.steps.0'],
      [{ ...nearly, script: [] }, 'script'],
      [{ name: 'nearly' }, 'script'],
    ] as const) {
      await expect(plain(wrong).scripts.distractors(task)).rejects.toMatchObject({
        code: 'TASK_INVALID',
        message: expect.stringMatching(/nearly.*scripts\.distractors/),
        data: { place: `scripts.distractors.${key}` },
      })
    }
  })

  it('rejects on abort, whatever the verifier made of it', async () => {
    const abort = new AbortController()
    abort.abort(new Error('stop'))
    const verify = () => Promise.reject(new PaddockError('BOX_DEAD', 'gone'))
    const environment = defineEnvironment({ ...spec, verify })
    await expect(environment.verify({ ...verification, signal: abort.signal })).rejects.toThrow('stop')
  })
})

describe('tools', () => {
  const echo = defineTool({
    name: 'echo',
    description: 'Says it.',
    input: z.object({ command: z.string(), times: z.int().optional() }),
    run: async (_, input) => ({ status: 'ok', text: input.command.repeat(input.times ?? 1) }),
  })
  const broken = defineTool({
    name: 'broken',
    description: 'Fails.',
    input: z.object({}),
    run: () => Promise.reject(new PaddockError('BOX_DEAD', 'gone')),
  })
  const context = { task, attempt: { id: 'attempt' }, box: {} as Box, signal: new AbortController().signal }
  const call = (name: string, argumentsText: string) => runToolCall([echo, broken], { name, argumentsText }, context)

  it('run with what the model wrote, and answer what it can act on', async () => {
    expect(await call('echo', '{"command": "a", "times": 2}')).toEqual({ status: 'ok', text: 'aa' })
    expect(await call('echo', '{"command": 1}')).toMatchObject({ status: 'error', text: /command/ })
    expect(await call('echo', '{"command": ')).toMatchObject({ status: 'error', text: /JSON/ })
    expect(await call('ecko', '{}')).toMatchObject({ status: 'error', text: /echo, broken/ })
    expect(await call('broken', '')).toMatchObject({ status: 'infra' })
  })

  it('show a plain JSON schema, and are found for shell steps by it', () => {
    expect(echo.inputSchema).toMatchObject({ type: 'object', required: ['command'] })
    expect(echo.inputSchema).not.toHaveProperty('$schema')
    expect(shellTool([broken, echo])).toMatchObject({ parameter: 'command', tool: { name: 'echo' } })
    expect(shellTool([broken])).toBeNull()
  })

  it('are refused with names or inputs that chat APIs do not take', () => {
    const parts = { description: '', run: async () => ({ status: 'ok' as const, text: '' }) }
    expect(() => defineTool({ ...parts, name: 'a b', input: z.object({}) })).toThrow(/not usable/)
    expect(() => defineTool({ ...parts, name: 'ab', input: z.string() })).toThrow(/not an object/)
  })
})

describe('the registry', () => {
  it('knows the built-in ones and names them when another is asked for', async () => {
    const registry = await environmentRegistry()
    expect(registry.get('terminal').name).toBe('terminal')
    expect(() => registry.get('gym')).toThrow(expect.objectContaining({ code: 'ENVIRONMENT_UNKNOWN' }))
  })

  it('loads objects and files, and refuses what is none, with the fix', async () => {
    const directory = tempDir()
    const registry = await environmentRegistry({ plugins: [defineEnvironment(spec)] })
    expect(registry.names).toContain('riddle')
    await writeFile(join(directory, 'empty.mjs'), 'export const nothing = 1\n')
    await writeFile(join(directory, 'broken.mjs'), 'export default {\n')
    const failing = async (plugin: string) =>
      environmentRegistry({ plugins: [plugin], directory }).then(
        () => 'loaded',
        (error: unknown) => (error instanceof PaddockError ? error.line() : String(error)),
      )
    expect(await failing('./empty.mjs')).toMatch(/ENVIRONMENT_INVALID.*empty\.mjs.*defineEnvironment/)
    expect(await failing('./broken.mjs')).toMatch(/ENVIRONMENT_INVALID.*broken\.mjs/)
    expect(await failing('./absent.mjs')).toMatch(/ENVIRONMENT_INVALID.*Check the path/)
    expect(await failing('paddock-environment-that-is-not-there')).toMatch(/npm install paddock-environment/)
    const twice = environmentRegistry({ plugins: [defineEnvironment(spec), defineEnvironment(spec)] })
    await expect(twice).rejects.toThrow(/two environments named riddle/)
  })
})

describe('task digests', () => {
  it('depend on what the task is, not on its name, place or the order of keys', () => {
    expect(makeTask({ ...task, name: 'two', source: 'elsewhere' }).digest).toBe(task.digest)
    expect(makeTask({ ...task, data: { b: 1, a: 2 } }).digest).toBe(makeTask({ ...task, data: { a: 2, b: 1 } }).digest)
    expect(makeTask({ ...task, data: { answer: '43' } }).digest).not.toBe(task.digest)
    expect(makeTask({ ...task, instruction: 'Answer!' }).digest).not.toBe(task.digest)
  })
})

describe('artifacts', () => {
  const entries = [
    { type: 'directory' as const, path: '.', mode: 0o755 },
    { type: 'file' as const, path: 'b.txt', mode: 0o640, data: Buffer.from('b') },
    { type: 'directory' as const, path: 'a', mode: 0o700 },
    { type: 'file' as const, path: `a/${'long name '.repeat(20)}ü`, mode: 0o755, data: Buffer.alloc(70_000, 1) },
    { type: 'symlink' as const, path: 'link', target: 'a' },
  ]
  const blank = { found: true, refused: [], totalBytes: 0 }
  const item = (list: typeof entries) => ({ path: '/w', content: { ...blank, entries: list } as never })

  it('are packed to the same bytes in whatever order they came, and come back whole', async () => {
    const packed = await packArtifact(item(entries))
    expect((await packArtifact(item(entries.toReversed()))).sha256).toBe(packed.sha256)
    const back = await unpackArtifact(packed)
    const plain = (list: readonly object[]) => list.map((e) => JSON.stringify(e)).toSorted()
    expect(plain(back.content.entries)).toEqual(plain(entries))
    await expect(unpackArtifact({ path: '/w', data: Buffer.alloc(700, 7) })).rejects.toMatchObject({
      code: 'STORE_CORRUPT',
    })
  })

  it('leave out what a pattern names, with all below it', () => {
    const paths = ['src/main.c', 'obj/main.o', 'src/obj/x', 'objects/y', 'a/b.tmp', 'obj']
    const content = { ...blank, entries: paths.map((path) => ({ type: 'file', path, mode: 0, data: Buffer.alloc(1) })) }
    const kept = withoutExcluded(content as never, ['obj/', '*.tmp']).entries.map((entry) => entry.path)
    expect(kept).toEqual(['src/main.c', 'objects/y'])
  })
})
