import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../config/index.ts'
import { painter, printable, printableText } from './colour.ts'
import { groupTable, rolloutTable, runTable } from './listings.ts'
import { failureText } from './failure.ts'
import { commonPrefix, readMessage } from '../../read/index.ts'
import { table } from './table.ts'
import { maskBar, tokenStrip, tokenText } from './tokens.ts'
import { bytes, duration } from './units.ts'
import { controlFindings, nodeFinding, supportFinding, watchesFindings } from '../doctor/machine.ts'

const plain = painter(false)
const bytesOf = (text: string) => new TextEncoder().encode(text)

describe('tokens', () => {
  const texts = new Map([
    [1, bytesOf('The')],
    [2, bytesOf(' end\n')],
    [3, new Uint8Array([0xe2, 0x82])],
    [4, bytesOf('\u001b[31m')],
  ])

  it('shows texts, white space, parts of characters and unknown ids', () => {
    expect([1, 2, 3, 4, 123].map((id) => tokenText(id, texts))).toEqual([
      'The',
      ' end⏎',
      '\\xe2\\x82',
      '\\x1b[31m',
      '⟨123⟩',
    ])
  })

  it('puts trained runs into brackets, with and without colour, and counts the rest', () => {
    const tokens = [1, 2, 1, 123].map((id, at) => ({ id, trained: at >= 2 }))
    expect(tokenStrip(tokens, texts, 10, plain)).toBe('The│ end⏎ ⟦The│⟨123⟩⟧')
    expect(tokenStrip(tokens, texts, 3, plain)).toBe('The│ end⏎ ⟦The⟧ … 1 more')
    const coloured = tokenStrip(tokens, texts, 10, painter(true))
    expect(coloured).toContain('\u001b[')
    expect(coloured).toContain('⟦The│⟨123⟩⟧')
  })

  it('draws a bar that is never longer than its row and shows a single kind as that kind', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('prompt' as const, 'masked' as const, 'trained' as const)), (kinds) => {
        const bar = maskBar(kinds)
        expect(bar.length).toBe(Math.min(48, kinds.length))
        if (kinds.length > 0 && kinds.every((kind) => kind === 'masked')) expect(bar).toMatch(/^▒+$/)
      }),
    )
  })
})

describe('text for a terminal', () => {
  it('has no control characters; text with lines keeps new lines and tabs', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(/\p{Cc}/u)
        expect(printableText(text)).not.toMatch(/(?![\n\t])\p{Cc}/u)
      }),
    )
    expect(printable('a\u001b]0;title\u0007b\n\tc\u202ed')).toBe('a\\x1b]0;title\\x07b\\n\\tc\\u202ed')
    expect(printableText('a\u001b]0;title\u0007b\n\tc\u202ed')).toBe('a\\x1b]0;title\\x07b\n\tc\\u202ed')
  })

  it('lines tables up by visible width', () => {
    const drawn = table(
      [{ title: 'a' }, { title: 'n', align: 'right' }],
      [
        ['x\u001b[1my\u001b[22m', '7'],
        ['é', '100'],
      ],
      {
        paint: plain,
        columns: null,
      },
    )
    expect(drawn).toBe('a     n\nx\u001b[1my\u001b[22m    7\né   100')
  })

  it('tells any failure in one line, and its causes only when asked', () => {
    const error = new Error('first\nsecond', { cause: new Error('deeper') })
    expect(failureText(error, false)).toMatch(/^INTERNAL: first second\. Fix: .*$/)
    expect(failureText(error, true)).toContain('deeper')
  })

  it('gives units', () => {
    expect([950, 4200, 187_000, 7_500_000].map(duration)).toEqual(['950 ms', '4.2 s', '3 m 07 s', '2 h 05 m'])
    expect([812, 3400, 1_200_000_000].map(bytes)).toEqual(['812 B', '3.4 KB', '1.2 GB'])
  })
})

describe('messages', () => {
  it('reads text, parts, reasoning and raw arguments, and survives what is no message', () => {
    expect(readMessage({ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'image_url' }] })).toMatchObject({
      role: 'user',
      text: 'a[image_url]',
    })
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{ "x": 1.0 }' } }
    expect(
      readMessage({ role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: [call] }),
    ).toMatchObject({
      text: '',
      reasoning: 'hm',
      toolCalls: [{ name: 'f', argumentsText: '{ "x": 1.0 }' }],
    })
    expect(readMessage(7)).toMatchObject({ role: 'unknown', text: '7' })
  })

  it('finds the common start', () => {
    expect(commonPrefix([{ a: 1 }, { b: 2 }], [{ a: 1 }, { b: 3 }])).toBe(1)
  })
})

describe('doctor', () => {
  it.each([
    ['24.21.0', 'ok'],
    ['22.19.0', 'ok'],
    ['22.18.9', 'problem'],
    ['20.20.2', 'problem'],
  ])('judges Node %s as %s', (version, status) => {
    expect(nodeFinding(version).status).toBe(status)
  })

  it.each([
    ['linux', 'x64', 'ok', 'tested'],
    ['linux', 'arm64', 'warning', 'should work'],
    ['darwin', 'arm64', 'warning', 'boxes need Linux'],
    ['win32', 'x64', 'warning', 'boxes need Linux'],
  ])('says what is promised on %s %s', (platform, processor, status, word) => {
    expect(supportFinding(platform, processor)).toMatchObject({ status, what: expect.stringContaining(word) })
  })

  it.each([
    ['127.0.0.1', {}, []],
    ['0.0.0.0', { PADDOCK_TLS_CERT: 'cert.pem' }, []],
    ['0.0.0.0', {}, [{ status: 'warning', what: expect.stringContaining('PLAIN_HTTP') }]],
    ['0.0.0.0', { PADDOCK_PLAIN_HTTP: '0' }, [{ status: 'warning', what: expect.stringContaining('PLAIN_HTTP') }]],
    ['0.0.0.0', { PADDOCK_PLAIN_HTTP: '1' }, [{ status: 'warning', what: expect.stringContaining('can be read') }]],
  ])('warns of plain HTTP beyond this machine, as variables say: %s, %s', async (host, more, found) => {
    const { config } = await loadConfig({ cwd: '/nowhere', env: { PADDOCK_CONTROL_HOST: host, ...more } })
    expect(controlFindings(config, null)).toMatchObject(found)
  })

  it.each([
    [{ host: '127.0.0.1', tls: false }, 'ok', 'http://127.0.0.1:8791'],
    [{ host: '0.0.0.0', tls: true }, 'ok', 'https://0.0.0.0:8791'],
    [{ host: '0.0.0.0', tls: false }, 'warning', 'http://0.0.0.0:8791: tokens'],
  ])('tells where the running owner is, whatever variables say: %s', async (listener, status, what) => {
    const { config } = await loadConfig({ cwd: '/nowhere', env: { PADDOCK_CONTROL_HOST: '10.0.0.1' } })
    const found = controlFindings(config, { pid: 7, listener: { ...listener, port: 8791 } })
    expect(found).toMatchObject([{ status, what: expect.stringContaining(`process 7 offers it at ${what}`) }])
  })

  it('the limits of file watching are told with what to set', () => {
    expect(watchesFindings(null, null)).toEqual([])
    expect(watchesFindings(512, 65_536)).toMatchObject([{ status: 'ok' }])
    expect(watchesFindings(128, 8192)).toMatchObject([
      {
        status: 'warning',
        fix: 'Run `sysctl -w fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=65536`.',
      },
    ])
  })
})

describe('names with new lines', () => {
  const bad = 'h\n7b71e496  completed  scored 1'
  const view = { paint: painter(false), columns: null }
  const at = Date.UTC(2026, 0, 1)
  const lines = (text: string): number => text.split('\n').length

  it('begin no line of their own in a table', () => {
    const run = { id: 'r'.repeat(36), name: bad, createdAt: at, config: {} }
    expect(lines(runTable([{ run, rollouts: [] }], view))).toBe(2)
    const group = { id: 'g'.repeat(36), runId: run.id, taskDigest: 'd'.repeat(64), promptVariant: bad, createdAt: at }
    expect(lines(groupTable([group], new Map([[group.taskDigest, bad]]), view))).toBe(2)
    const rollout = {
      id: 'o'.repeat(36),
      runId: run.id,
      groupId: group.id,
      taskDigest: group.taskDigest,
      slot: 0,
      attempt: 0,
      harness: bad,
      createdAt: at,
      startedAt: at,
      endedAt: at,
      end: 'completed' as const,
      endDetail: bad,
      labels: { node: bad, [bad]: bad },
      taints: [],
      verdicts: [],
      work: null,
    }
    expect(lines(rolloutTable([rollout as never], view, new Map([[group.taskDigest, bad]])))).toBe(2)
  })
})
