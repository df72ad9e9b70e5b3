import { describe, expect, it } from 'vitest'
import type { Verdict, VerdictBy } from '../../core/index.ts'
import { rewardOfPolicy, verdictInForce, verifiersVerdict } from './verdict-in-force.ts'

function verdict(id: string, by: VerdictBy, supersedes: string | null = null): Verdict {
  return {
    id,
    by,
    supersedes,
    rolloutId: 'r',
    at: 0,
    status: 'scored',
    reward: 1,
    components: {},
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: { id: 'v', version: '1', sha256: '' },
    trust: 'host',
    costTokens: 0,
  }
}

describe('the verdict in force', () => {
  it.each<[string, readonly Verdict[], string | null]>([
    ['is none without any', [], null],
    ['is the last of the verifiers', [verdict('a', 'verifier'), verdict('b', 'verifier', 'a')], 'b'],
    ['is the one given late', [verdict('a', 'verifier'), verdict('b', 'late', 'a')], 'b'],
    [
      'stays the one given late when a verifier runs again',
      [verdict('a', 'verifier'), verdict('b', 'late', 'a'), verdict('c', 'verifier', 'a')],
      'b',
    ],
    [
      'stays the one given late even when a verifier names it as superseded',
      [verdict('a', 'verifier'), verdict('b', 'late', 'a'), verdict('c', 'verifier', 'b')],
      'b',
    ],
    [
      'is the last one given late',
      [verdict('a', 'late'), verdict('b', 'late', 'a'), verdict('c', 'verifier', null)],
      'b',
    ],
  ])('%s', (_what, verdicts, id) => {
    expect(verdictInForce(verdicts)?.id ?? null).toBe(id)
  })

  it('of the verifiers is not touched by what is said late', () => {
    const verdicts = [verdict('a', 'verifier'), verdict('b', 'late', 'a'), verdict('c', 'verifier', 'a')]
    expect(verifiersVerdict(verdicts)?.id).toBe('c')
    expect(verifiersVerdict(verdicts.slice(0, 2))?.id).toBe('a')
  })
})

it('the reward of a policy is the number that it has of its own, else that of all', () => {
  const verdict = { reward: 0.5, byPolicy: { guide: 1, critic: 0 } }
  const of = (policy: string | null) => rewardOfPolicy(verdict, policy)
  expect([of('guide'), of('critic'), of('opener'), of(null)]).toEqual([1, 0, 0.5, 0.5])
  // A policy may have a name that every object has something under.
  expect(of('constructor')).toBe(0.5)
  expect(rewardOfPolicy({ reward: null }, 'guide')).toBe(null)
})
