import { describe, expect, test } from 'vitest'
import type { HarnessExit } from './contract.ts'
import { defineHarness } from './define.ts'
import { qwenCode } from './qwen-code/index.ts'
import { harnessRegistry } from './registry.ts'
import { shellHarness } from './shell/index.ts'

const exit: HarnessExit = { exitCode: 0, signal: null, oom: false, stdout: '', stderr: '' }

describe('what Qwen Code says of its end', () => {
  const result = (members: object) => JSON.stringify([{ type: 'system' }, { type: 'result', ...members }])
  // Outputs as printed by 0.24.4.
  const turnLimit =
    '{"error":{"type":"FatalTurnLimitedError","message":"Reached max session turns for this session.","code":53}}'
  test.each([
    ['a run to the end', { stdout: result({ is_error: false, result: 'Done.' }) }, 'completed', 'Done.'],
    ['its turn limit', { exitCode: 53, stderr: turnLimit }, 'horizon', null],
    [
      'an error that it reports with exit 0',
      { stdout: result({ is_error: true, result: '[API Error: 500]' }) },
      'harness_crash',
      '[API Error: 500]',
    ],
    [
      'a prompt too long',
      { exitCode: 1, stderr: "This model's maximum context length is 4096 tokens" },
      'context_overflow',
      null,
    ],
    ['a crash', { exitCode: 1, stderr: 'TypeError: x\n' }, 'harness_crash', null],
    ['a kill', { exitCode: null, signal: 'SIGSEGV' }, 'harness_crash', null],
    ['output that is cut', { stdout: '[{"type":"sys' }, 'completed', null],
  ])('%s', (_, facts, end, answer) => {
    expect(qwenCode().parseResult({ ...exit, ...facts })).toMatchObject({ end, answer })
  })
})

test('a true exit status is told with the line of stderr that says most', () => {
  const harness = shellHarness({ command: 'x' })
  const detail = (facts: Partial<HarnessExit>) => harness.parseResult({ ...exit, ...facts }).detail
  expect(detail({ exitCode: 3, stderr: 'one\ntwo\n' })).toBe('exit 3: two')
  const stack = 'TypeError: x is not a function\n    at main.js:1:1\n\nNode.js v24.21.0\n'
  expect(detail({ exitCode: 1, stderr: stack })).toBe('exit 1: TypeError: x is not a function')
  expect(detail({ exitCode: null, oom: true })).toBe('killed for memory')
  expect(detail({ exitCode: null, signal: 'SIGKILL' })).toBe('killed by SIGKILL')
})

describe('the registry', () => {
  test('knows the presets, names those that exist, and says which need a command', () => {
    const registry = harnessRegistry()
    expect(registry.names).toEqual(['qwen-code', 'reference', 'script', 'shell'])
    expect(registry.get('shell', { command: 'my-agent' }).name).toBe('shell')
    expect(() => registry.get('qwen')).toThrow(expect.objectContaining({ code: 'HARNESS_UNKNOWN' }))
    expect(() => registry.get('shell')).toThrow(expect.objectContaining({ code: 'USAGE' }))
  })

  test('takes plugins, checks them, and refuses a name twice', () => {
    const plugin = { ...shellHarness({ command: 'mine' }), name: 'mine' }
    expect(harnessRegistry({ plugins: [plugin] }).get('mine')).toBe(plugin)
    const invalid = expect.objectContaining({ code: 'HARNESS_INVALID' })
    expect(() => harnessRegistry({ plugins: [{ ...plugin, name: 'shell' }] })).toThrow(invalid)
    expect(() => defineHarness({ ...plugin, name: 'My Agent' })).toThrow(invalid)
    const broken: Partial<typeof plugin> = { ...plugin }
    Reflect.deleteProperty(broken, 'configure')
    expect(() => defineHarness(broken as typeof plugin)).toThrow(invalid)
  })
})
