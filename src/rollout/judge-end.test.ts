import { describe, expect, test } from 'vitest'
import { PaddockError } from '../core/index.ts'
import { type EndFacts, judgeEnd } from './judge-end.ts'

const quiet: EndFacts = {
  cancelled: false,
  fault: null,
  expired: null,
  report: { end: 'completed', detail: 'exit 0', answer: null },
  stats: { exhausted: null, lastError: null, taints: [], replaying: false },
}
const crash = { end: 'harness_crash', detail: 'exit 1', answer: null } as const
const engineDied = { exhausted: null, lastError: 'ENGINE_DIED', taints: ['ENGINE_DIED'], replaying: false } as const

describe('the end of a rollout', () => {
  const cases: readonly [string, Partial<EndFacts>, string][] = [
    ['a harness that is done', {}, 'completed'],
    ['a harness that failed', { report: crash }, 'harness_crash'],
    ['a harness at its own turn limit', { report: { ...crash, end: 'horizon' } }, 'horizon'],
    ['no time left', { report: null, expired: 'budget' }, 'agent_timeout'],
    ['no wall time left', { report: null, expired: 'wall' }, 'agent_timeout'],
    ['Ctrl-C, whatever else', { cancelled: true, fault: new Error('x'), expired: 'budget' }, 'cancelled'],
    ['a box that died', { report: null, fault: new PaddockError('BOX_DEAD', 'gone') }, 'infra'],
    ['files that nobody can list', { fault: new PaddockError('BOX_FILES_UNFIT', 'deep') }, 'harness_crash'],
    ['a fault of our own code', { report: null, fault: new TypeError('x is not a function') }, 'infra'],
    [
      'a refusal over budget',
      { report: crash, stats: { ...quiet.stats, exhausted: 'maxCalls', lastError: 'BUDGET_EXHAUSTED' } },
      'budget',
    ],
    ['a budget that was just enough', { stats: { ...quiet.stats, exhausted: 'maxCalls' } }, 'completed'],
    [
      'a prompt too long',
      { report: crash, stats: { ...quiet.stats, lastError: 'CONTEXT_OVERFLOW' } },
      'context_overflow',
    ],
    ['an engine that died last, harness crashed', { report: crash, stats: engineDied }, 'infra'],
    ['an engine that died last, harness content', { stats: engineDied }, 'infra'],
    ['an engine that died last, harness waiting', { report: null, expired: 'budget', stats: engineDied }, 'infra'],
    ['an engine that failed once, and its harness went on', { stats: { ...engineDied, lastError: null } }, 'completed'],
    [
      'no time left after a fault',
      { report: null, expired: 'wall', stats: { ...engineDied, lastError: null } },
      'infra',
    ],
    [
      'a harness that crashed some time after a fault',
      { report: crash, stats: { ...engineDied, lastError: null } },
      'infra',
    ],
    [
      'a request that the engine called bad',
      { report: crash, stats: { ...quiet.stats, lastError: 'ENGINE_ERROR' } },
      'harness_crash',
    ],
  ]
  test.each(cases)('%s', (_, facts, end) => {
    expect(judgeEnd({ ...quiet, ...facts }).end).toBe(end)
  })

  test('says why', () => {
    const fault = new PaddockError('BOX_DEAD', 'the relay died')
    expect(judgeEnd({ ...quiet, fault }).detail).toContain('BOX_DEAD: the relay died')
    expect(judgeEnd({ ...quiet, report: crash }).detail).toBe('exit 1')
  })
})
