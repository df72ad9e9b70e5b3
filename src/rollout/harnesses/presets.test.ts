import { describe, expect, test } from 'vitest'
import type { HarnessExit } from './contract.ts'
import { defineHarness } from './define.ts'
import { claudeCode } from './claude-code/index.ts'
import { codex } from './codex/index.ts'
import { geminiCli } from './gemini-cli/index.ts'
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

describe('what the other presets say of their end', () => {
  const lines = (...events: object[]) => events.map((event) => JSON.stringify(event)).join('\n')
  const said = { type: 'item.completed', item: { type: 'agent_message', text: 'Done.' } }
  const claude = (members: object) => JSON.stringify({ type: 'result', subtype: 'success', ...members })
  // Outputs as printed by Claude Code 2.1.329, Codex 0.169.0 and Gemini CLI 0.61.0.
  test.each([
    [claudeCode(), { stdout: claude({ is_error: false, result: 'Done.' }) }, 'completed', 'Done.'],
    [claudeCode(), { exitCode: 1, stdout: claude({ subtype: 'error_max_turns' }) }, 'horizon', null],
    [claudeCode(), { stdout: claude({ is_error: true, result: 'API Error' }) }, 'harness_crash', 'API Error'],
    [claudeCode(), { exitCode: 1, stdout: 'Prompt is too long' }, 'context_overflow', null],
    [codex(), { stdout: lines({ type: 'turn.started' }, said) }, 'completed', 'Done.'],
    [
      codex(),
      { exitCode: 1, stdout: lines(said, { type: 'turn.failed', error: { message: 'x' } }) },
      'harness_crash',
      'Done.',
    ],
    [codex(), { exitCode: 1, stdout: '{"code":"context_length_exceeded"}' }, 'context_overflow', null],
    [geminiCli(), { stdout: '{"response":"Done.","stats":{}}' }, 'completed', 'Done.'],
    [geminiCli(), { exitCode: 53, stderr: 'FatalTurnLimitedError' }, 'horizon', null],
  ])('%o', (harness, facts, end, answer) => {
    expect(harness.parseResult({ ...exit, ...facts })).toMatchObject({ end, answer })
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
    expect(registry.names).toEqual(['claude-code', 'codex', 'gemini-cli', 'qwen-code', 'reference', 'script', 'shell'])
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
