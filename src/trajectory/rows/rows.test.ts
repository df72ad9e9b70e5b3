import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CallClass } from '../../core/index.ts'
import type { CallRecord, Segment, SessionLog } from '../contract/index.ts'
import { Accounting, buildRows, sampledTokens } from './index.ts'

const names = { rolloutId: 'rollout', groupId: 'group', taskDigest: 'task' }

/** What a generated call does: where its prompt hangs, how much it adds, what it samples, what becomes of it. */
interface Move {
  /** Picks an earlier sampled segment to extend; the root when there is none. */
  readonly after: number
  /** True: only a part of that segment is kept, as after an edit inside it. */
  readonly cut: boolean
  readonly prompt: number
  readonly sampled: readonly number[]
  readonly callClass: CallClass
  readonly gone: boolean
  readonly superseded: boolean
  readonly noLogprobs: boolean
  /** A request without tools under a prompt of its own; else the agent's. */
  readonly asks?: 'title'
}

const move = fc.record<Move>({
  after: fc.nat(20),
  cut: fc.boolean(),
  prompt: fc.integer({ min: 1, max: 6 }),
  sampled: fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 2 }),
  callClass: fc.constantFrom('main', 'main', 'main', 'subagent', 'title', 'compaction'),
  gone: fc.boolean(),
  superseded: fc.constantFrom(false, false, false, true),
  noLogprobs: fc.constantFrom(false, false, false, true),
})

/** A session log whose every token is a different number, so that a row's tokens tell where they come from. */
function logOf(moves: readonly Move[]): { log: SessionLog; contexts: Map<string, number[]> } {
  const segments: Segment[] = []
  const calls: CallRecord[] = []
  const contexts = new Map<string, number[]>()
  const paths = new Map<string, number[]>()
  let token = 0
  const fresh = (count: number): number[] => Array.from({ length: count }, () => token++)
  for (const [seq, { after, cut, prompt, sampled, ...rest }] of moves.entries()) {
    const answers = segments.filter((segment) => segment.origin === 'sampled' && segment.tokens.length > 0)
    const parent = answers[after % Math.max(answers.length, 1)]
    const offset = parent === undefined ? 0 : cut ? Math.ceil(parent.tokens.length / 2) : parent.tokens.length
    const before =
      parent === undefined ? [] : [...(contexts.get(parent.id) ?? []), ...parent.tokens.subarray(0, offset)]
    const promptTokens = fresh(prompt)
    const promptId = `p${seq}`
    segments.push(segment(promptId, seq, null, 'prompt', promptTokens, parent && { segmentId: parent.id, offset }))
    paths.set(promptId, [...before, ...promptTokens])
    for (const [choice, count] of sampled.entries()) {
      const id = `s${seq}.${choice}`
      const made = segment(id, seq, choice, 'sampled', fresh(count), { segmentId: promptId, offset: prompt })
      segments.push(rest.noLogprobs ? { ...made, logprobs: null } : made)
      contexts.set(id, [...before, ...promptTokens])
    }
    calls.push(call(seq, sampled.length, rest))
  }
  return { log: { ...session, calls, segments }, contexts }
}

const session = {
  session: { id: 'session', role: 'agent', policy: {} } as SessionLog['session'],
  closedAt: null,
  spans: [],
  events: [],
} satisfies Partial<SessionLog>

function segment(
  id: string,
  seq: number,
  choice: number | null,
  origin: Segment['origin'],
  tokens: number[],
  parent: Segment['parent'] | undefined,
): Segment {
  return {
    id,
    sessionId: 'session',
    callId: `c${seq}`,
    choice,
    parent: parent ?? null,
    origin,
    tokens: Int32Array.from(tokens),
    logprobs: origin === 'sampled' ? Float32Array.from(tokens, (value) => -value / 1024) : null,
    flags: null,
    logprobKind: 'raw',
    policySpans: [],
    replayOf: null,
    stopCut: false,
  }
}

function call(
  seq: number,
  choices: number,
  outcome: Pick<Move, 'asks' | 'callClass' | 'gone' | 'superseded'>,
): CallRecord {
  return {
    intent: {
      id: `c${seq}`,
      seq,
      callClass: outcome.callClass,
      lineage:
        outcome.asks === 'title' ? { toolCount: 0, systemDigest: 'title' } : { toolCount: 1, systemDigest: 'agent' },
      fingerprint: null,
    } as unknown as CallRecord['intent'],
    commit: {
      outcome: outcome.gone ? { kind: 'client_gone', upstream: 'finished' } : { kind: 'complete' },
      choices: Array.from({ length: choices }, (_, index) => ({ index, finishReason: 'stop' })),
    } as unknown as CallRecord['commit'],
    delivery: 'unknown',
    superseded: outcome.superseded,
  }
}

const plain: Move = {
  after: 0,
  cut: false,
  prompt: 3,
  sampled: [2],
  callClass: 'main',
  gone: false,
  superseded: false,
  noLogprobs: false,
}

/** Prompts as roots: calls that share nothing. */
function unhung(made: Segment): Segment {
  return made.origin === 'prompt' ? { ...made, parent: null } : made
}

describe('buildRows', () => {
  it('gives an append-only conversation one row in which every sampled token is trained', () => {
    const moves = Array.from({ length: 5 }, (_, n) => ({ ...plain, after: n === 0 ? 0 : n - 1 }))
    const { log } = logOf(moves)
    const { rows } = buildRows(log, names)
    expect(rows).toHaveLength(1)
    expect([...(rows[0]?.mask ?? [])]).toEqual(moves.flatMap(() => [0, 0, 0, 1, 1]))
    expect(rows[0]?.promptLength).toBe(3)
  })

  it('trains a shared prefix in one of two branches only', () => {
    const { log } = logOf([plain, plain, plain])
    const { rows } = buildRows(log, names)
    expect(rows).toHaveLength(2)
    const trainedOfFirst = rows.map((row) => row.segments.find((part) => part.segmentId === 's0.0')?.trained)
    expect(trainedOfFirst).toEqual([true, false])
  })

  it('leaves out an answer that a retry replaced, and keeps it as soon as it was echoed', () => {
    const { log } = logOf([plain, { ...plain, superseded: true }])
    expect(buildRows(log, names).rows).toHaveLength(1)
    expect(buildRows(log, names).outside.notExported).toEqual({ superseded: 2 })
    const echoed = { ...log, calls: log.calls.map((made) => ({ ...made, delivery: 'echoed' as const })) }
    expect(buildRows(echoed, names).outside.notExported).toEqual({})
  })

  it('leaves out what nobody got, and keeps what a client came back for', () => {
    const { log } = logOf([plain, { ...plain, gone: true }])
    expect(buildRows(log, names).outside.notExported).toEqual({ undelivered_sibling: 2 })
    const settled = (upstream: 'finished' | 'aborted') => {
      const calls = log.calls.map((made) => {
        const gone = made.commit?.outcome.kind === 'client_gone' && made.commit !== null
        const commit = gone ? { ...made.commit, outcome: { kind: 'client_gone' as const, upstream } } : made.commit
        return { ...made, commit, delivery: 'sent' as const }
      })
      return buildRows({ ...log, calls }, names).outside.notExported
    }
    expect(settled('finished')).toEqual({})
    // Half an answer is no answer, whoever got it.
    expect(settled('aborted')).toEqual({ undelivered_sibling: 2 })
  })

  it('does not let a side call that extends the agent path end or own its row', () => {
    const { log } = logOf([plain, { ...plain, after: 0, callClass: 'compaction' }])
    const { rows, outside } = buildRows(log, names)
    expect(rows.map((row) => row.leafCallId)).toEqual(['c0'])
    expect(outside.notExported).toEqual({ class: 2 })
  })

  it('does not train a title that was asked for before the agent showed its tools', () => {
    const { log } = logOf([{ ...plain, asks: 'title' }, plain])
    const { rows, outside } = buildRows({ ...log, segments: log.segments.map(unhung) }, names)
    expect(rows.map((row) => row.leafCallId)).toEqual(['c1'])
    expect(outside.notExported).toEqual({ class: 2 })
  })

  it('never trains a judge', () => {
    const { log } = logOf([plain])
    const judged = { ...log, session: { ...log.session, role: 'judge' as const } }
    expect(buildRows(judged, names)).toEqual({
      rows: [],
      unclean: 0,
      outside: { masked: {}, notExported: { judge: 2 } },
    })
  })

  it('names the policy of a row, and never trains a frozen one', () => {
    const { log } = logOf([plain])
    const of = (policy: object) =>
      buildRows({ ...log, session: { ...log.session, policy: { ...log.session.policy, ...policy } } }, names)
    expect(of({ name: 'guide' }).rows).toMatchObject([{ policy: 'guide' }])
    expect(of({}).rows.every((row) => !('policy' in row))).toBe(true)
    expect(of({ name: 'guide', trained: false })).toEqual({
      rows: [],
      unclean: 0,
      outside: { masked: {}, notExported: { frozen_policy: 2 } },
    })
  })

  it('leaves a token without logprob untrained', () => {
    const { log } = logOf([plain])
    const flagged = log.segments.map((part) =>
      part.origin === 'sampled'
        ? { ...part, flags: Uint8Array.of(0, 4), logprobs: Float32Array.of(-1, Number.NaN) }
        : part,
    )
    const row = buildRows({ ...log, segments: flagged }, names).rows[0]
    expect([...(row?.mask ?? [])]).toEqual([0, 0, 0, 1, 0])
    expect([...(row?.logprobs ?? [])]).toEqual([0, 0, 0, -1, 0])
  })

  it('holds over generated conversations: context truth, train once, one bucket each', () => {
    fc.assert(
      fc.property(fc.array(move, { minLength: 1, maxLength: 14 }), fc.boolean(), (moves, includeUntrainedRows) => {
        const { log, contexts } = logOf(moves)
        const built = buildRows(log, { ...names, includeUntrainedRows })
        const trained = new Set<number>()
        for (const row of built.rows) {
          for (const part of row.segments.filter((candidate) => candidate.origin === 'sampled')) {
            // I2: what stands before a sampled segment is exactly what its call was conditioned on.
            expect([...row.tokens.subarray(0, part.start)]).toEqual(contexts.get(part.segmentId))
          }
          for (const [at, value] of row.mask.entries()) {
            if (value === 0) continue
            const id = row.tokens[at] ?? -1
            // I3: tokens of the generated log are all different, so an id is a token.
            expect(trained.has(id)).toBe(false)
            trained.add(id)
            expect(row.logprobs[at]).toBe(Math.fround(-id / 1024))
          }
        }
        const accounting = new Accounting()
        accounting.exported(log, built)
        const total = accounting.total()
        const counts = [...Object.values(total.masked), ...Object.values(total.notExported)]
        // I4
        expect(total.sampled).toBe(sampledTokens(log))
        expect(total.trainable + counts.reduce((sum, count) => sum + count, 0)).toBe(total.sampled)
        expect(total.trainable).toBe(trained.size)
        const usable = log.calls.filter(
          (made) => made.commit?.outcome.kind === 'complete' && !made.superseded && made.intent.callClass === 'main',
        )
        const due = log.segments.filter(
          (part) =>
            part.origin === 'sampled' &&
            part.logprobs !== null &&
            usable.some((made) => made.intent.id === part.callId),
        )
        // Nothing of the agent's own delivered answers is lost.
        for (const id of due.flatMap((part) => [...part.tokens])) expect(trained.has(id)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })
})
