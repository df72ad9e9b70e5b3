import { expect, it } from 'vitest'
import type { Lineage } from '../../core/index.ts'
import { type ClassifiedCall, classifyCall } from './call-class.ts'

const lineage = (more: Partial<Lineage>): Lineage => ({
  nativeSession: null,
  nativeAgent: null,
  nativeParent: null,
  requestKind: null,
  toolsDigest: null,
  toolCount: 0,
  systemDigest: null,
  userAgent: null,
  modelAsked: 'm',
  retryCount: null,
  idempotencyKey: null,
  ...more,
})
const agent = lineage({ toolsDigest: 't', toolCount: 14, systemDigest: 's' })

it.each([
  ['an agent with tools', [agent, agent], ['main', 'main']],
  ['a plain chat script without tools', [lineage({}), lineage({})], ['main', 'main']],
  ['a side call without tools beside an agent', [agent, lineage({ systemDigest: 'title' })], ['main', 'other']],
  [
    'another system prompt in a session without tools',
    [lineage({ systemDigest: 'a' }), lineage({ systemDigest: 'b' })],
    ['main', 'other'],
  ],
  ['a system prompt that changes with the date', [agent, { ...agent, systemDigest: 'tomorrow' }], ['main', 'main']],
  [
    'other tools under another system prompt',
    [agent, { ...agent, systemDigest: 'x', toolsDigest: 'y' }],
    ['main', 'subagent'],
  ],
  [
    'Codex review and compaction',
    [agent, { ...agent, requestKind: 'review' }, { ...agent, requestKind: 'compact' }],
    ['main', 'subagent', 'compaction'],
  ],
  ['a Claude Code sub-agent', [agent, { ...agent, nativeAgent: 'b', nativeParent: 'a' }], ['main', 'subagent']],
] as const)('%s', (_what, calls, expected) => {
  const history: ClassifiedCall[] = []
  for (const call of calls) history.push({ lineage: call, callClass: classifyCall(call, history) })
  expect(history.map((call) => call.callClass)).toEqual(expected)
})
