import { describe, expect, it } from 'vitest'
import type { CallClass, Lineage } from '../../core/index.ts'
import { intentFact, sessionFact } from '../../testing/store/index.ts'
import type { SessionLog } from '../contract/index.ts'
import { type ClassifiedCall, classifyCall, withHindsight } from './index.ts'

type Shape = Partial<Lineage> & { readonly maxTokens?: number }
type Seen = readonly (readonly [Shape, CallClass])[]

const plain: Lineage = {
  nativeSession: null,
  nativeAgent: null,
  nativeParent: null,
  requestKind: null,
  toolsDigest: null,
  toolCount: 0,
  systemDigest: null,
  userAgent: 'OpenAI/JS 7.55.0',
  modelAsked: 'm1',
  retryCount: 0,
  idempotencyKey: null,
}
const agent = { toolsDigest: 'tools', toolCount: 14, systemDigest: 'agent' }
const codex = { ...agent, nativeSession: 's', nativeAgent: 'thread-1', userAgent: 'codex_cli_rs/0.169.0' }
const claude = { ...agent, nativeSession: 's', userAgent: 'claude-cli/2.1.329 (external, cli)' }
const opencode = { ...agent, nativeSession: 's', userAgent: 'opencode/1.18.33' }
const helpful = { systemDigest: 'you are helpful' }

/** Shapes in the manner of real harnesses, and what each call is. */
const sessions: readonly (readonly [string, Seen])[] = [
  [
    'Qwen Code: every call is the agent',
    [
      [agent, 'main'],
      [agent, 'main'],
    ],
  ],
  [
    'OpenCode: the first request asks for a title, without tools',
    [
      [{ userAgent: opencode.userAgent, systemDigest: 'title' }, 'other'],
      [opencode, 'main'],
      [opencode, 'main'],
      [{ ...opencode, nativeParent: 's' }, 'subagent'],
    ],
  ],
  [
    'opencode 1.18: the title request says so in its own words, with the limit of an ordinary turn',
    [
      [opencode, 'main'],
      [{ userAgent: opencode.userAgent, systemDigest: 'title', requestKind: 'title', maxTokens: 32_000 }, 'title'],
    ],
  ],
  [
    'pi: what comes first without tools is not the agent',
    [
      [{ userAgent: 'pi (linux 6.18; x64)', systemDigest: 'summarise' }, 'other'],
      [{ ...agent, userAgent: 'pi (linux 6.18; x64)' }, 'main'],
    ],
  ],
  [
    'Claude Code: sub-agents have an id and a parent, the small model names the session',
    [
      [{ userAgent: claude.userAgent, maxTokens: 1 }, 'probe'],
      [{ userAgent: claude.userAgent, systemDigest: 'topic', maxTokens: 32, modelAsked: 'haiku' }, 'title'],
      [claude, 'main'],
      [{ ...claude, systemDigest: 'explore', toolsDigest: 'few', nativeAgent: 'a1', nativeParent: 'top' }, 'subagent'],
      [{ ...claude, nativeAgent: 'a2' }, 'subagent'],
      [claude, 'main'],
    ],
  ],
  [
    'Codex: its own word decides, and a word for ordinary turns does not',
    [
      [{ userAgent: codex.userAgent, systemDigest: 'warm-up' }, 'other'],
      [codex, 'main'],
      [{ ...codex, requestKind: 'turn' }, 'main'],
      [{ ...codex, requestKind: 'review' }, 'subagent'],
      [{ ...codex, requestKind: 'collab_spawn', nativeAgent: 'thread-2', nativeParent: 'thread-1' }, 'subagent'],
      [{ ...codex, requestKind: 'compact' }, 'compaction'],
      [{ ...codex, requestKind: 'memory_consolidation' }, 'other'],
    ],
  ],
  [
    'a plain chat script is trained',
    [
      [helpful, 'main'],
      [helpful, 'main'],
      [{ systemDigest: 'summarise' }, 'other'],
      [{ systemDigest: 'name this', maxTokens: 20 }, 'title'],
    ],
  ],
  [
    'a script without system prompt is trained, also with a small limit',
    [
      [{ maxTokens: 16 }, 'main'],
      [{ maxTokens: 16 }, 'main'],
    ],
  ],
  [
    'an agent that drops its tools for the last answer',
    [
      [agent, 'main'],
      [{ systemDigest: 'agent' }, 'main'],
    ],
  ],
  [
    'an agent whose prompt holds the date, or that loads another tool',
    [
      [agent, 'main'],
      [{ ...agent, systemDigest: 'next day' }, 'main'],
      [{ ...agent, toolsDigest: 'one more' }, 'main'],
    ],
  ],
  [
    'another agent without a word of its own',
    [
      [agent, 'main'],
      [{ toolsDigest: 'other', toolCount: 2, systemDigest: 'worker' }, 'subagent'],
    ],
  ],
  [
    'side calls in a session with tools',
    [
      [agent, 'main'],
      [{}, 'other'],
      [{ systemDigest: 'x', maxTokens: 100 }, 'title'],
      [agent, 'main'],
    ],
  ],
]

describe('classifyCall', () => {
  it.each(sessions)('%s', (_what, calls) => {
    const history: ClassifiedCall[] = []
    for (const [{ maxTokens, ...shape }] of calls) {
      const lineage = { ...plain, ...shape }
      history.push({ lineage, callClass: classifyCall(lineage, history, { maxTokens: maxTokens ?? null }) })
    }
    expect(history.map((call) => call.callClass)).toEqual(calls.map(([, expected]) => expected))
  })
})

describe('withHindsight', () => {
  const logOf = (...calls: Seen): SessionLog => {
    const session = sessionFact()
    return {
      session,
      closedAt: null,
      calls: calls.map(([{ maxTokens: _maxTokens, ...shape }, callClass], seq) => ({
        intent: intentFact(session.id, seq, '{}', { lineage: { ...plain, ...shape }, callClass }),
        commit: null,
        delivery: 'unknown',
        superseded: false,
      })),
      segments: [],
      spans: [],
      events: [],
    }
  }

  it('finds the side call that came before the agent of an unknown program', () => {
    const seen = withHindsight(logOf([{ systemDigest: 'title' }, 'main'], [agent, 'main'], [agent, 'main']))
    expect(seen.calls.map(({ intent }) => intent.callClass)).toEqual(['other', 'main', 'main'])
  })

  it.each<[string, Seen]>([
    [
      'a first answer under the agent\u2019s own prompt',
      [
        [{ systemDigest: 'agent' }, 'main'],
        [agent, 'main'],
      ],
    ],
    [
      'a call after the agent\u2019s first',
      [
        [agent, 'main'],
        [{ systemDigest: 'x' }, 'main'],
      ],
    ],
    ['a plain chat', [[helpful, 'main']]],
  ])('leaves %s alone', (_what, calls) => {
    const log = logOf(...calls)
    expect(withHindsight(log)).toBe(log)
  })
})
