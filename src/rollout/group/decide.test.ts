import { describe, expect, it } from 'vitest'
import type { RolloutEnd, Verdict } from '../../core/index.ts'
import type { RolloutView } from '../../trajectory/index.ts'
import { decide, memberOf, outOf, type SlotState } from './decide.ts'
import { type GroupRequest, groupSpec } from './spec.ts'

let slots = 0
function rolloutOf(more: Partial<RolloutView>): RolloutView {
  slots += 1
  return {
    id: `rollout-${slots}`,
    runId: 'run',
    groupId: 'group',
    slot: slots,
    attempt: 0,
    harness: 'x',
    createdAt: 0,
    taskDigest: 't',
    work: null,
    startedAt: 0,
    endedAt: 1,
    end: 'completed',
    endDetail: '',
    taints: [],
    verdicts: [],
    labels: {},
    ...more,
  }
}

function verdictOf(status: Verdict['status']): Verdict {
  const facts = {
    id: 'v',
    rolloutId: 'r',
    at: 0,
    components: {},
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: { id: 'v', version: '1', sha256: '' },
    trust: 'separate',
    by: 'verifier',
    costTokens: 0,
    supersedes: null,
  } as const
  if (status === 'scored' || status === 'hacked') return { ...facts, status, reward: 1 }
  return { ...facts, status, reward: null, reason: 'because' }
}

const over = (more: Partial<RolloutView>): SlotState => ({
  slot: slots,
  rollout: rolloutOf(more),
  over: true,
  verifying: false,
  verdictFromOutside: false,
})
const ended = (end: RolloutEnd, status?: Verdict['status']): SlotState =>
  over({ end, verdicts: status === undefined ? [] : [verdictOf(status)] })
const good = (): SlotState => ended('completed', 'scored')
const running = (): SlotState => ({ ...over({ end: null, endedAt: null }), over: false })
const waiting = (): SlotState => ({
  slot: 9,
  rollout: null,
  over: false,
  verifying: false,
  verdictFromOutside: false,
})
const verifying = (): SlotState => ({ ...running(), verifying: true })
const outside = (end: RolloutEnd = 'completed'): SlotState => ({ ...ended(end), verdictFromOutside: true })
const of = (asked: GroupRequest, members: readonly SlotState[], ageMs = 0) =>
  decide({ spec: groupSpec(asked), ageMs }, members)

describe('a round', () => {
  it('waits for every member, whatever most of them came to', () => {
    expect(of({ n: 3 }, [good(), good(), running()])).toEqual({ kind: 'wait' })
    expect(of({ n: 3 }, [good(), good(), waiting()])).toEqual({ kind: 'wait' })
    expect(of({ n: 3 }, [good(), good(), ended('infra')])).toMatchObject({
      kind: 'settle',
      state: 'settled',
      stoppedBy: null,
    })
  })

  it('waits for a pending verdict, and for one that comes from outside', () => {
    expect(of({ n: 2 }, [good(), ended('completed', 'pending')])).toEqual({ kind: 'wait' })
    expect(of({ n: 2 }, [good(), outside()])).toEqual({ kind: 'wait' })
    expect(of({ n: 2 }, [good(), outside('infra')])).toMatchObject({ kind: 'settle' })
    expect(of({ n: 2 }, [good(), ended('completed')])).toMatchObject({ kind: 'settle' })
  })

  it('stops at enough usable members, and not before', () => {
    const asked = { n: 2, over: 1 }
    expect(of(asked, [good(), ended('completed', 'unscorable'), running()])).toEqual({ kind: 'wait' })
    expect(of(asked, [good(), good(), running()])).toEqual({ kind: 'stop', why: 'usable' })
    expect(of(asked, [good(), good(), ended('cancelled')])).toMatchObject({
      kind: 'settle',
      state: 'settled',
      stoppedBy: 'usable',
    })
    expect(of(asked, [good(), good(), good()])).toMatchObject({ kind: 'settle', state: 'settled', stoppedBy: null })
  })

  it('waits for a verifier, but not once it stops', () => {
    expect(of({ n: 2 }, [good(), verifying()])).toEqual({ kind: 'wait' })
    expect(of({ n: 1, over: 1 }, [good(), verifying()])).toMatchObject({
      kind: 'settle',
      state: 'settled',
      stoppedBy: 'usable',
    })
    expect(outOf(verifying(), true)).toBe('late')
  })

  it('counts neither tainted nor failed nor unscored members as usable', () => {
    const tainted = over({ taints: ['engine'], verdicts: [verdictOf('scored')] })
    const asked = { n: 1, over: 3 }
    for (const one of [tainted, ended('infra'), ended('completed', 'judge_failed'), ended('cancelled', 'scored')]) {
      expect(of(asked, [one, running(), running(), running()])).toEqual({ kind: 'wait' })
    }
    expect(of(asked, [ended('horizon', 'hacked'), running()])).toEqual({ kind: 'stop', why: 'usable' })
  })

  it('stops at its deadline, with what there is', () => {
    const asked = { n: 2, deadlineMs: 100, minUsable: 2 }
    expect(of(asked, [good(), running()], 99)).toEqual({ kind: 'wait' })
    expect(of(asked, [good(), running()], 100)).toEqual({ kind: 'stop', why: 'deadline' })
    expect(of(asked, [good(), ended('cancelled')], 100)).toMatchObject({
      kind: 'settle',
      state: 'failed',
      stoppedBy: 'deadline',
    })
    expect(of(asked, [good(), ended('completed', 'pending')], 100)).toMatchObject({ stoppedBy: 'deadline' })
  })

  it('opens further slots for members that are not usable, up to a bound, and before it settles only', () => {
    const asked = { n: 3, topUp: 2 }
    expect(of(asked, [good(), ended('infra'), running()])).toEqual({ kind: 'top_up', count: 1 })
    expect(of(asked, [ended('infra'), ended('infra'), ended('infra')])).toEqual({ kind: 'top_up', count: 2 })
    expect(of(asked, [good(), ended('infra'), running(), running()])).toEqual({ kind: 'wait' })
    expect(of(asked, [good(), ended('infra'), ended('infra'), ended('infra'), good()])).toMatchObject({
      kind: 'settle',
    })
    expect(of({ ...asked, deadlineMs: 1 }, [good(), ended('infra'), good()], 2)).toMatchObject({ kind: 'settle' })
  })

  it('asks for the slots that nobody has opened yet', () => {
    expect(of({ n: 2, over: 1 }, [])).toEqual({ kind: 'top_up', count: 2 })
  })

  it('fails below its least number of usable members', () => {
    const members = [good(), ended('infra')]
    expect(of({ n: 2, minUsable: 2 }, members)).toMatchObject({ kind: 'settle', state: 'failed' })
    expect(of({ n: 2, minUsable: 1 }, members)).toMatchObject({ kind: 'settle', state: 'settled' })
  })

  it('stops on rewards only where so many members as it needs are usable', () => {
    const [zero, one] = [0, 1].map((reward) => over({ verdicts: [{ ...verdictOf('scored'), reward } as Verdict] }))
    if (zero === undefined || one === undefined) throw new Error('no members')
    const pass = { n: 4, stopWhen: { kind: 'any_pass' } } as const
    expect(of(pass, [zero, zero, running(), running()])).toEqual({ kind: 'wait' })
    expect(of(pass, [zero, one, running(), running()])).toEqual({ kind: 'stop', why: 'any_pass' })
    expect(of({ ...pass, minUsable: 3 }, [zero, one, running(), running()])).toEqual({ kind: 'wait' })
    const variance = { n: 4, stopWhen: { kind: 'variance' } } as const
    expect(of(variance, [one, one, running(), running()])).toEqual({ kind: 'wait' })
    expect(of(variance, [zero, one, running(), running()])).toEqual({ kind: 'stop', why: 'variance' })
  })

  it('leaves members going on under carry, and stops them where it is cancelled', () => {
    const carrying = { n: 1, over: 1, carry: true, deadlineMs: 60 }
    const [one, other] = [
      { ...running(), slot: 4 },
      { ...waiting(), slot: 5 },
    ]
    const carried = new Set([4, 5])
    expect(of(carrying, [good(), one, other])).toMatchObject({ kind: 'settle', stoppedBy: 'usable', carried })
    expect(of(carrying, [one, other], 60)).toMatchObject({ kind: 'settle', stoppedBy: 'deadline', carried })
    const round = { spec: groupSpec(carrying), ageMs: 0 }
    expect(decide(round, [good(), one], true)).toEqual({ kind: 'stop', why: 'cancelled' })
  })

  it('stops when it is cancelled, and tops nothing up', () => {
    const round = { spec: groupSpec({ n: 2, topUp: 4 }), ageMs: 0 }
    expect(decide(round, [good(), running()], true)).toEqual({ kind: 'stop', why: 'cancelled' })
    expect(decide(round, [good(), ended('cancelled')], true)).toMatchObject({
      kind: 'settle',
      state: 'settled',
      stoppedBy: 'cancelled',
    })
  })
})

describe('a member', () => {
  it.each([
    ['infra', ended('infra')],
    ['late', ended('completed', 'pending')],
    ['late', outside()],
    ['tainted', over({ taints: ['x'], verdicts: [verdictOf('scored')] })],
    ['no_number', ended('completed', 'gold_error')],
    ['no_number', ended('completed')],
    [null, ended('budget', 'scored')],
  ])('is out as %s', (why, one) => expect(outOf(one, true)).toBe(why))

  it('that was stopped is censored where its group stopped, else cancelled', () => {
    expect(outOf(ended('cancelled'), true)).toBe('censored')
    expect(outOf(ended('cancelled'), false)).toBe('cancelled')
  })

  it('says what its cut was worth', () => {
    const spec = groupSpec({ n: 1, onCut: { horizon: 'zero' } })
    const o = { spec, stopped: false, sampled: { sampledTokens: 4, turns: 1, weights: [] } }
    expect(memberOf(ended('horizon', 'scored'), o)).toMatchObject({ out: null, cut: 'zero', sampledTokens: 4 })
    expect(memberOf(ended('budget', 'scored'), o)?.cut).toBe('verify')
    expect(memberOf(good(), o)?.cut).toBeNull()
    expect(memberOf(waiting(), o)).toBeNull()
  })
})

describe('what is asked of a group', () => {
  it('stops at n where more than n are started, and at its deadline else', () => {
    expect(groupSpec({ n: 4, over: 2 }).stopWhen).toEqual({ kind: 'usable', count: 4 })
    expect(groupSpec({ n: 4 }).stopWhen).toEqual({ kind: 'deadline' })
  })

  it.each([
    { n: 2, minUsable: 3 },
    { n: 2, stopWhen: { kind: 'usable', count: 4 }, over: 1 } as const,
    { n: 2, carry: true },
  ])('is refused where it could never be met: %j', (asked) =>
    expect(() => groupSpec(asked)).toThrow(expect.objectContaining({ code: 'GROUP_INVALID' })),
  )
})
