import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { sha256 } from '../../core/index.ts'
import { bareTask } from '../bare-task.ts'
import type { BoxHarness, HarnessExit, LaunchContext } from './contract.ts'
import { defineHarness } from './define.ts'
import { claudeCode } from './claude-code/index.ts'
import { cline } from './cline/index.ts'
import { codex } from './codex/index.ts'
import { geminiCli } from './gemini-cli/index.ts'
import { opencode } from './opencode/index.ts'
import { piHarness } from './pi/index.ts'
import { qwenCode } from './qwen-code/index.ts'
import { configuredPresets } from './configured.ts'
import { harnessRegistry, pinnableHarnesses } from './registry.ts'
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

describe('what opencode, pi and Cline say of their end', () => {
  const text = (value: string) => ({ type: 'text', part: { type: 'text', text: value } })
  const refusal = (name: string, data: object) => JSON.stringify({ type: 'error', error: { name, data } })
  const turn = (message: object) => JSON.stringify({ type: 'turn_end', message: { content: [], ...message } })
  const result = (members: object) => JSON.stringify({ ts: '2026-11-21T20:37:10.657Z', type: 'run_result', ...members })
  const noModel = 'The model `nope` does not exist.'
  const noKey = 'The key is missing or opens no session. (AUTH_KEY_UNKNOWN)'
  const tooLong = "This model's maximum context length is 4096 tokens. However, you requested 9999 tokens."
  const refused = 'Cannot connect to API: Unable to connect. Is the computer able to access the url?'
  const talk = JSON.stringify({ type: 'tool_use', part: { output: 'grep: maximum context length, ECONNREFUSED' } })
  // Outputs as printed by opencode 1.18.33, pi 0.87.1 and Cline 3.0.65 against a server that answers so; shortened.
  test.each<[BoxHarness, Partial<HarnessExit>, object]>([
    [opencode(), { stdout: JSON.stringify(text('Done.')) }, { end: 'completed', answer: 'Done.' }],
    [
      opencode(),
      { exitCode: 1, stdout: refusal('APIError', { message: noKey, statusCode: 401 }) },
      { end: 'harness_crash', fault: 'auth' },
    ],
    [
      opencode(),
      { exitCode: 1, stdout: refusal('APIError', { message: noModel, statusCode: 404 }) },
      { end: 'harness_crash', fault: 'unknown_model', detail: expect.stringContaining('does not exist') },
    ],
    [
      opencode(),
      { exitCode: 1, stdout: refusal('ContextOverflowError', { message: tooLong }) },
      { end: 'context_overflow', fault: 'context_overflow' },
    ],
    [
      opencode(),
      { exitCode: 1, stdout: refusal('APIError', { message: refused }) },
      { end: 'harness_crash', fault: 'network' },
    ],
    [
      opencode(),
      { exitCode: null, signal: 'SIGSEGV', stdout: talk },
      { end: 'harness_crash', detail: 'killed by SIGSEGV' },
    ],
    [
      piHarness(),
      { stdout: turn({ stopReason: 'stop', content: [{ type: 'text', text: 'Done.' }] }) },
      { end: 'completed', answer: 'Done.' },
    ],
    [
      piHarness(),
      { stdout: turn({ stopReason: 'error', errorMessage: `401: {"message":"${noKey}","code":"invalid_api_key"}` }) },
      { end: 'harness_crash', fault: 'auth' },
    ],
    [
      piHarness(),
      { stdout: turn({ stopReason: 'error', errorMessage: `404: {"code":"model_not_found"}` }) },
      { end: 'harness_crash', fault: 'unknown_model' },
    ],
    [
      piHarness(),
      { stdout: turn({ stopReason: 'error', errorMessage: `400: {"message":"${tooLong}"}` }) },
      { end: 'context_overflow', fault: 'context_overflow' },
    ],
    [
      piHarness(),
      { stdout: turn({ stopReason: 'error', errorMessage: 'Connection error.' }) },
      { end: 'harness_crash', fault: 'network' },
    ],
    [
      piHarness(),
      {
        stdout: `${turn({ stopReason: 'error', errorMessage: 'Connection error.' })}\n${turn({ stopReason: 'stop' })}`,
      },
      { end: 'completed', answer: null },
    ],
    [piHarness(), { exitCode: 1, stderr: 'Error: Unknown provider\n' }, { end: 'harness_crash' }],
    [cline(), { stdout: result({ finishReason: 'completed', text: 'Done.' }) }, { end: 'completed', answer: 'Done.' }],
    [
      cline(),
      { exitCode: 1, stdout: result({ finishReason: 'error', text: noKey }) },
      { end: 'harness_crash', fault: 'auth', answer: null },
    ],
    [
      cline(),
      { exitCode: 1, stdout: result({ finishReason: 'error', text: noModel }) },
      { end: 'harness_crash', fault: 'unknown_model' },
    ],
    [
      cline(),
      { exitCode: 1, stdout: result({ finishReason: 'error', text: `(provider reported: ${tooLong})` }) },
      { end: 'context_overflow', fault: 'context_overflow' },
    ],
    [
      cline(),
      { exitCode: 1, stdout: result({ finishReason: 'error', text: refused }) },
      { end: 'harness_crash', fault: 'network' },
    ],
    [cline(), { exitCode: 134, stdout: talk, stderr: 'panic: abort\n' }, { end: 'harness_crash' }],
  ])('%o', (harness, facts, report) => {
    expect(harness.parseResult({ ...exit, ...facts })).toMatchObject(report)
  })

  test('pi is refused, with the fix, where tools are offered over MCP only', () => {
    const context = launchContext({ mcp: { name: 'receipts', url: 'http://127.0.0.1:7171/mcp' } })
    expect(() => piHarness().configure(context)).toThrow(expect.objectContaining({ code: 'HARNESS_INVALID' }))
    expect(piHarness().configure(launchContext({})).stdin).toBe('@do it')
  })

  const launchContext = (members: Partial<LaunchContext>): LaunchContext => ({
    task: bareTask({ name: 'x', instruction: '@do it' }),
    prompt: '@do it',
    systemPrompt: null,
    origin: 'http://127.0.0.1:7171',
    apiKey: 'paddock',
    model: 'm1',
    mcp: null,
    bundlePath: '/bundle',
    home: '/home/agent',
    workdir: '/app',
    ...members,
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
    expect(registry.names).toEqual([
      'claude-code',
      'cline',
      'codex',
      'gemini-cli',
      'gui-text',
      'opencode',
      'pi',
      'qwen-code',
      'reex-sql',
      'reference',
      'script',
      'shell',
      'skyrl-sql',
    ])
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

describe('presets of a configuration, without code', () => {
  const directory = import.meta.dirname
  const made = (presets: Parameters<typeof configuredPresets>[0]) =>
    configuredPresets(presets, { directory, pinnable: pinnableHarnesses })
  const context: LaunchContext = {
    task: bareTask({ name: 'a', instruction: 'Do.' }),
    prompt: 'Do.',
    systemPrompt: null,
    origin: 'http://127.0.0.1:9',
    apiKey: 'placeholder',
    model: 'm',
    mcp: null,
    bundlePath: '/bundle',
    home: '/home/h',
    workdir: '/workspace',
  }

  test('an npm package with a command line and variables', async () => {
    const env = { MY_URL: '{origin}/v1', CONFIG: '{"key": "{key}", "home": "{home}"}' }
    const { own } = await made({ mine: { npm: '@me/agent@1.2.3', run: 'agent --go', env, dialect: 'messages' } })
    const [mine] = own
    expect(mine).toMatchObject({ name: 'mine', dialect: 'messages', bundle: { name: 'mine' } })
    expect(mine?.bundle?.version).toMatch(/^1\.2\.3-/)
    const launch = mine?.configure(context)
    expect(launch?.command).toMatch(/^export PATH="\/bundle\/bin:\/bundle\/node_modules\/\.bin:.*:\$PATH"\nagent --go$/)
    expect(launch?.env).toMatchObject({
      MY_URL: 'http://127.0.0.1:9/v1',
      CONFIG: '{"key": "placeholder", "home": "/home/h"}',
      OPENAI_MODEL: 'm',
    })
    const [other] = (await made({ mine: { npm: '@me/agent@1.2.4', run: 'agent --go', env } })).own
    expect(other?.version).not.toBe(mine?.version)
  })

  test('a program of this machine', async () => {
    const into = tempDir()
    const { own } = await made({ mine: { binary: './presets.test.ts', run: 'presets.test.ts' } })
    await own[0]?.bundle?.build(into, {})
    expect((await stat(join(into, 'bin/presets.test.ts'))).mode & 0o777).toBe(0o755)
  })

  test.each(pinnableHarnesses)('%s takes a version', async (name) => {
    const { options } = await made({ [name]: { version: '99.1.0' } })
    const registry = harnessRegistry()
    const [pinned, own] = [registry.get(name, options), registry.get(name)]
    expect(pinned.version).toBe('99.1.0')
    expect(own.version).not.toBe('99.1.0')
    expect(pinned.place === 'box' ? pinned.bundle?.version : '').toMatch(/^99\.1\.0-/)
  })

  test('shell takes a bundle, and without one keeps the version of its command', async () => {
    const { options } = await made({ shell: { npm: 'agent@1.2.3' } })
    const shell = harnessRegistry().get('shell', { ...options, command: 'agent' })
    expect(shell).toMatchObject({ name: 'shell', bundle: { name: 'shell' } })
    const plain = harnessRegistry().get('shell', { command: 'agent' })
    expect(plain.version).toBe(sha256('agent').slice(0, 12))
    expect(shell.version).not.toBe(plain.version)
  })

  test.each([
    ['no command', { mine: { npm: 'agent@1.2.3' } }, '`run` is missing'],
    ['two programs', { mine: { npm: 'agent@1.2.3', binary: './x', run: 'x' } }, '`npm` and `binary`'],
    ['no such program', { mine: { binary: './nothing', run: 'x' } }, 'cannot be read'],
    ['a version beside its own command', { mine: { run: 'x', version: '1.2.3' } }, '`version` is for built-in'],
    ['a built-in preset with a command', { codex: { version: '1.2.3', run: 'x' } }, '`run` is not for'],
    ['a built-in preset with nothing', { codex: {} }, '`version` is missing'],
    ['shell with a command', { shell: { run: 'x' } }, 'comes from --command'],
    ['an unknown word in braces', { mine: { run: 'x', env: { A: '{orgin}' } } }, '{orgin}'],
  ])('%s is refused', async (_, presets, said) => {
    await expect(made(presets)).rejects.toMatchObject({
      code: 'HARNESS_INVALID',
      message: expect.stringContaining(said),
    })
  })
})
