import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Event, newId } from '../../core/index.ts'
import type { CallIntent, Recorder, RecorderReader, Segment } from '../../trajectory/index.ts'
import { growingBody, sampleCommit, sampleIntent, sampleSegment, sampleSession } from './samples.ts'

/** A fresh recorder, a second reader of the same log, and a way to open the log again as a new owner. */
export interface RecorderUnderTest {
  readonly recorder: Recorder
  openReader(): Promise<RecorderReader>
  /** Closes the recorder and opens the log anew. */
  reopen(): Promise<Recorder>
  close(): Promise<void>
}

/** What every {@link Recorder} driver must do. */
export function recorderContract(name: string, make: () => Promise<RecorderUnderTest>): void {
  describe(`recorder contract: ${name}`, () => {
    let made: RecorderUnderTest
    let recorder: Recorder
    beforeEach(async () => {
      made = await make()
      recorder = made.recorder
    })
    afterEach(async () => made.close())

    /** A conversation of `calls` answered calls, each extending the one before. */
    const converse = async (
      calls: number,
    ): Promise<{ sessionId: string; intents: CallIntent[]; segments: Segment[] }> => {
      const session = sampleSession()
      await recorder.openSession(session)
      const intents: CallIntent[] = []
      const segments: Segment[] = []
      let parent: Segment['parent'] = null
      for (let seq = 0; seq < calls; seq += 1) {
        const intent = sampleIntent(session.id, seq)
        await recorder.beginCall(intent)
        const prompt = sampleSegment(intent, 'prompt', parent, 50)
        const answer = sampleSegment(intent, 'sampled', { segmentId: prompt.id, offset: 50 }, 30)
        parent = { segmentId: answer.id, offset: 30 }
        await recorder.commitCall(sampleCommit(intent, [prompt, answer]))
        intents.push(intent)
        segments.push(prompt, answer)
      }
      return { sessionId: session.id, intents, segments }
    }

    it('gives back every fact of a session as it was given', async () => {
      const session = sampleSession({ rolloutId: newId(), labels: { task: 'ä "quoted"' } })
      await recorder.openSession(session)
      const intent = sampleIntent(session.id, 0)
      await recorder.beginCall(intent)
      const prompt = sampleSegment(intent, 'prompt', null, 700)
      const answer = sampleSegment(intent, 'sampled', { segmentId: prompt.id, offset: 700 }, 4, {
        tokens: Int32Array.of(0, 151_935, -1, 2_147_483_647),
        logprobs: Float32Array.of(-0.5, Number.NaN, -9999, -0),
        flags: Uint8Array.of(0, 2, 1, 0),
      })
      const commit = sampleCommit(intent, [prompt, answer], {
        forks: [
          { cause: 'think_stripped', fromCallId: null, position: 9, expected: [1, 2], got: [], tokensAffected: 3 },
        ],
        findings: ['count_mismatch'],
      })
      await recorder.commitCall(commit)
      await recorder.closeSession(session.id, 99)
      const log = await recorder.session(session.id)
      const { segments: _segments, spans, ...facts } = commit
      expect(log.session).toEqual(session)
      expect(log.closedAt).toBe(99)
      expect(log.calls).toHaveLength(1)
      expect(plain(log.calls[0]?.intent)).toEqual(plain(intent))
      expect(plain(log.calls[0]?.commit)).toEqual(plain(facts))
      expect(log.calls[0]).toMatchObject({ delivery: 'unknown', superseded: false })
      expect(log.spans).toEqual(spans)
      expect(log.segments).toEqual([prompt, answer])
      expect(Object.is(log.segments[1]?.logprobs?.[3], -0)).toBe(true)
    })

    it('gives bodies back byte for byte, whatever they have in common', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(body(), { minLength: 1, maxLength: 20 }), async (bodies) => {
          const session = sampleSession()
          await recorder.openSession(session)
          for (const [seq, content] of bodies.entries()) {
            await recorder.beginCall(sampleIntent(session.id, seq, { body: content }))
          }
          const log = await recorder.session(session.id)
          expect(log.calls.map((call) => hex(call.intent.body))).toEqual(bodies.map(hex))
        }),
        { numRuns: 25 },
      )
    })

    it('keeps calls in order of seq and refuses a seq, a session or a call that is there already', async () => {
      const { sessionId, intents } = await converse(2)
      const log = await recorder.session(sessionId)
      expect(log.calls.map((call) => call.intent.seq)).toEqual([0, 1])
      await expect(recorder.beginCall(sampleIntent(sessionId, 1))).rejects.toThrow()
      await expect(recorder.beginCall(intents[0] ?? sampleIntent(sessionId, 9))).rejects.toThrow()
      await expect(recorder.openSession(log.session)).rejects.toThrow()
      expect((await recorder.session(sessionId)).calls).toHaveLength(2)
    })

    it('refuses a second commit and keeps the first', async () => {
      const { sessionId, intents } = await converse(1)
      const [intent] = intents
      if (intent === undefined) throw new Error('no call')
      await expect(recorder.commitCall(sampleCommit(intent, [], { status: 500 }))).rejects.toThrow()
      expect((await recorder.session(sessionId)).calls[0]?.commit?.status).toBe(200)
    })

    it('stores a commit whole or not at all', async () => {
      const session = sampleSession()
      await recorder.openSession(session)
      const intent = sampleIntent(session.id, 0)
      await recorder.beginCall(intent)
      const prompt = sampleSegment(intent, 'prompt', null, 5)
      const orphan = sampleSegment(intent, 'sampled', { segmentId: newId(), offset: 5 }, 3)
      await expect(recorder.commitCall(sampleCommit(intent, [prompt, orphan]))).rejects.toThrow()
      const log = await recorder.session(session.id)
      expect(log.segments).toEqual([])
      expect(log.calls[0]?.commit).toBeNull()
    })

    it('keeps one failed write from harming the writes beside it', async () => {
      const { sessionId } = await converse(1)
      const results = await Promise.allSettled([
        recorder.beginCall(sampleIntent(sessionId, 1)),
        recorder.beginCall(sampleIntent(sessionId, 0)),
        recorder.beginCall(sampleIntent(sessionId, 2)),
      ])
      expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect((await recorder.session(sessionId)).calls).toHaveLength(3)
    })

    it('remembers delivery and supersession as they come', async () => {
      const { sessionId, intents } = await converse(2)
      const [first, second] = intents
      if (first === undefined || second === undefined) throw new Error('no calls')
      await recorder.settleDelivery(first.id, 'sent')
      await recorder.settleDelivery(first.id, 'echoed')
      await recorder.supersede(second.id, first.id)
      const { calls } = await recorder.session(sessionId)
      expect(calls.map(({ delivery, superseded }) => [delivery, superseded])).toEqual([
        ['echoed', false],
        ['unknown', true],
      ])
    })

    it('keeps events of a rollout in order, with and without a session', async () => {
      const rolloutId = newId()
      const session = sampleSession({ rolloutId })
      await recorder.openSession(session)
      const events: Event[] = Array.from({ length: 5 }, (_, n) => ({
        id: newId(),
        at: 1000 - n,
        rolloutId,
        sessionId: n % 2 === 0 ? session.id : null,
        kind: 'label',
        name: `n${n}`,
        value: 'ä\u2028',
      }))
      for (const event of events) await recorder.appendEvent(event)
      expect(await recorder.events({ rolloutId })).toEqual(events)
      expect((await recorder.session(session.id)).events).toEqual(events.filter((_, n) => n % 2 === 0))
      expect(await recorder.events({ rolloutId: newId() })).toEqual([])
    })

    it('finds sessions by rollout, and says NOT_FOUND for one that is not there', async () => {
      const rolloutId = newId()
      const mine = sampleSession({ rolloutId })
      await recorder.openSession(sampleSession())
      await recorder.openSession(mine)
      expect(await recorder.sessions({ rolloutId })).toEqual([mine])
      expect(await recorder.sessions()).toHaveLength(2)
      expect(await recorder.sessions({ limit: 1 })).toHaveLength(1)
      await expect(recorder.session(newId())).rejects.toMatchObject({ code: 'NOT_FOUND' })
    })

    it('reads bodies only where they are asked for', async () => {
      const { sessionId, intents } = await converse(3)
      const wanted = intents[1]?.id ?? ''
      const { calls } = await recorder.session(sessionId, { bodies: [wanted] })
      expect(calls.map((call) => call.intent.body.length > 0)).toEqual([false, true, false])
      expect(calls.map((call) => (call.commit?.reply.length ?? 0) > 0)).toEqual([false, true, false])
    })

    it('shows a reader beside it what is durable', async () => {
      const { sessionId, segments } = await converse(3)
      const reader = await made.openReader()
      expect((await reader.session(sessionId)).segments).toEqual(segments)
      await reader.close()
    })

    it('marks calls that were in flight as interrupted when the log is opened again, and loses nothing', async () => {
      const { sessionId, segments } = await converse(2)
      await recorder.beginCall(sampleIntent(sessionId, 2))
      recorder = await made.reopen()
      const log = await recorder.session(sessionId)
      expect(log.segments).toEqual(segments)
      expect(log.calls.map((call) => call.commit?.fate.kind)).toEqual(['complete', 'complete', 'interrupted'])
    })

    it('takes thousands of writes at once without dropping or reordering any', async () => {
      const session = sampleSession()
      await recorder.openSession(session)
      await Promise.all(
        Array.from({ length: 2000 }, (_, seq) =>
          recorder.beginCall(sampleIntent(session.id, seq, { body: growingBody(seq % 7, 60) })),
        ),
      )
      await recorder.flush()
      const { calls } = await recorder.session(session.id, { bodies: [] })
      expect(calls.map((call) => call.intent.seq)).toEqual(Array.from({ length: 2000 }, (_, seq) => seq))
    })
  })
}

/** Bodies that grow, shrink, change in the middle, are empty or are noise. */
function body(): fc.Arbitrary<Uint8Array> {
  return fc.oneof(
    fc.nat(6).map((seq) => growingBody(seq, 100)),
    fc.tuple(fc.nat(6), fc.string()).map(([seq, text]) => Buffer.concat([growingBody(seq, 90), Buffer.from(text)])),
    fc.tuple(fc.nat(6), fc.string()).map(([seq, text]) => Buffer.concat([Buffer.from(text), growingBody(seq, 80)])),
    fc.uint8Array({ maxLength: 300 }),
    fc.constant(new Uint8Array()),
  )
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Buffers and views of equal content compare equal. */
function plain(facts: object | null | undefined): unknown {
  const entries = Object.entries(facts ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key, value instanceof Uint8Array ? hex(value) : value]))
}
