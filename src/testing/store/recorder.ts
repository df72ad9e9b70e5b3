import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import {
  type CallCommit,
  type CallIntent,
  type Recorder,
  type RecorderReader,
  tokenFlag,
} from '../../trajectory/index.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from './facts.ts'

/** An open log. It may hold sessions of others, as logs do: opening one for each test is most of what a suite takes. */
export interface RecorderUnderTest {
  readonly recorder: Recorder
  /** Opens the same log the way another process would, beside the live recorder. */
  reader(): Promise<RecorderReader>
  /** Closes the recorder and opens the log again: what a restart sees. */
  restart(): Promise<Recorder>
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

    const opened = async (): Promise<string> => {
      const session = sessionFact()
      await recorder.openSession(session)
      return session.id
    }
    const began = async (sessionId: string, seq = 0, body = '{}'): Promise<CallIntent> => {
      const intent = intentFact(sessionId, seq, body)
      await recorder.beginCall(intent)
      return intent
    }

    it('gives a call back field by field, whichever reader asks', async () => {
      const session = sessionFact({ rolloutId: newId() })
      await recorder.openSession(session)
      const intent = intentFact(session.id, 0, '{"model":"m","n":1.0}')
      await recorder.beginCall(intent)
      const prompt = promptFact(intent, ids(3))
      const flags = Uint8Array.from([0, tokenFlag.nan, tokenFlag.floored])
      const answer = sampledFact(
        intent,
        Int32Array.from([151_645, 0, 2 ** 31 - 1]),
        Float32Array.from([-0.1, Number.NaN, -9999]),
        { segmentId: prompt.id, offset: 2 },
        { flags, stopCut: true },
      )
      const commit = commitFact(intent, [prompt, answer], {
        forks: [{ cause: 'template', fromCallId: null, position: 2, expected: [1], got: [2], tokensAffected: 4 }],
        findings: ['count_mismatch'],
      })
      await recorder.commitCall(commit)
      await recorder.settleDelivery(intent.id, 'sent')
      const { segments, spans, ...rest } = commit
      const expected = {
        session,
        closedAt: null,
        calls: [
          {
            intent: { ...intent, body: new Uint8Array(intent.body) },
            commit: { ...rest, reply: new Uint8Array(commit.reply) },
            delivery: 'sent',
            superseded: false,
          },
        ],
        segments,
        spans,
        events: [],
      }
      await recorder.flush()
      const reader = await made.reader()
      for (const log of [await recorder.session(session.id), await reader.session(session.id)]) {
        expect(plain(log)).toEqual(plain(expected))
      }
      expect(await recorder.sessions({ rolloutId: session.rolloutId ?? '' })).toEqual([session])
      await reader.close()
    })

    it('leaves out the bodies that nobody asked for', async () => {
      const sessionId = await opened()
      const calls = [await began(sessionId, 0, '{"a":1}'), await began(sessionId, 1, '{"a":2}')]
      const log = await recorder.session(sessionId, { bodies: [calls[1]?.id ?? ''] })
      expect(log.calls.map((call) => Buffer.from(call.intent.body).toString())).toEqual(['', '{"a":2}'])
    })

    it('knows whose a call is', async () => {
      const sessionId = await opened()
      const call = await began(sessionId, 0, '{}')
      await recorder.flush()
      const reader = await made.reader()
      for (const one of [recorder, reader]) {
        expect(await one.sessionOfCall(call.id)).toBe(sessionId)
        await expect(one.sessionOfCall(sessionId)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      }
      await reader.close()
    })

    it('stores any bodies byte for byte, also over restarts', async () => {
      const piece = fc.oneof(fc.string({ maxLength: 40 }), fc.constantFrom('{"messages":[', '],"tools":[]}', ''))
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.nat(9), piece, piece), { minLength: 1, maxLength: 40 }),
          fc.nat(39),
          async (edits, restartAt) => {
            const sessionId = await opened()
            const bodies: string[] = []
            for (const [seq, [from, insert, tail]] of edits.entries()) {
              const base = bodies[Math.max(0, seq - 1 - from)] ?? ''
              const place = base.length >> 1
              bodies.push(base.slice(0, place) + insert + base.slice(place) + tail)
              if (seq === restartAt) recorder = await made.restart()
              await began(sessionId, seq, bodies[seq])
            }
            const log = await recorder.session(sessionId)
            expect(log.calls.map((call) => Buffer.from(call.intent.body).toString())).toEqual(bodies)
          },
        ),
        { numRuns: 15 },
      )
    })

    it('stores any tokens, logprobs and flags bit for bit', async () => {
      const column = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 ** 31 - 1 }), fc.float(), fc.nat(7)), {
        minLength: 1,
        maxLength: 300,
      })
      await fc.assert(
        fc.asyncProperty(column, async (tokens) => {
          const sessionId = await opened()
          const intent = await began(sessionId)
          const answer = sampledFact(
            intent,
            Int32Array.from(tokens, ([id]) => id),
            Float32Array.from(tokens, ([, logprob]) => logprob),
            null,
            { flags: Uint8Array.from(tokens, ([, , flag]) => flag) },
          )
          await recorder.commitCall(commitFact(intent, [answer]))
          const [read] = (await recorder.session(sessionId)).segments
          expect(bits(read?.tokens)).toEqual(bits(answer.tokens))
          expect(bits(read?.logprobs)).toEqual(bits(answer.logprobs))
          expect(bits(read?.flags)).toEqual(bits(answer.flags))
        }),
        { numRuns: 25 },
      )
    })

    it('does not touch the arrays that it was given', async () => {
      const sessionId = await opened()
      const pool = new ArrayBuffer(64)
      const intent = intentFact(sessionId, 0, '', { body: new Uint8Array(pool, 8, 4).fill(65) })
      await recorder.beginCall(intent)
      const answer = sampledFact(intent, ids(4), Float32Array.from([-1, -2, -3, -4]), null)
      await recorder.commitCall(commitFact(intent, [answer]))
      expect([pool.byteLength, answer.tokens.length, answer.logprobs?.length]).toEqual([64, 4, 4])
    })

    it('keeps an empty generation', async () => {
      const sessionId = await opened()
      const intent = await began(sessionId)
      const prompt = promptFact(intent, ids(2))
      const empty = sampledFact(intent, ids(0), null, { segmentId: prompt.id, offset: 2 })
      await recorder.commitCall(commitFact(intent, [prompt, empty]))
      expect((await recorder.session(sessionId)).segments.map((segment) => segment.tokens.length)).toEqual([2, 0])
    })

    it('refuses a second commit and keeps the first', async () => {
      const sessionId = await opened()
      const intent = await began(sessionId)
      await recorder.commitCall(commitFact(intent, [], { status: 200 }))
      await expect(recorder.commitCall(commitFact(intent, [], { status: 500 }))).rejects.toMatchObject({
        code: 'STORE_CONFLICT',
      })
      expect((await recorder.session(sessionId)).calls[0]?.commit?.status).toBe(200)
    })

    it.each<[string, (intent: CallIntent) => CallCommit]>([
      [
        'a segment beyond the end of its parent',
        (intent) => {
          const prompt = promptFact(intent, ids(3))
          return commitFact(intent, [prompt, sampledFact(intent, ids(1), null, { segmentId: prompt.id, offset: 4 })])
        },
      ],
      [
        'an unknown parent',
        (intent) => commitFact(intent, [promptFact(intent, ids(1), { segmentId: newId(), offset: 1 })]),
      ],
      [
        'fewer logprobs than tokens',
        (intent) => commitFact(intent, [sampledFact(intent, ids(2), new Float32Array(1), null)]),
      ],
      ['an empty prompt segment', (intent) => commitFact(intent, [promptFact(intent, ids(0))])],
    ])('refuses %s, writes nothing of it, and goes on', async (_what, commitOf) => {
      const sessionId = await opened()
      const intent = await began(sessionId)
      await expect(recorder.commitCall(commitOf(intent))).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      const log = await recorder.session(sessionId)
      expect([log.calls[0]?.commit, log.segments]).toEqual([null, []])
      await recorder.commitCall(commitFact(intent, [promptFact(intent, ids(1))]))
      expect((await recorder.session(sessionId)).segments).toHaveLength(1)
    })

    it('refuses what names nothing, and a call in a closed session', async () => {
      await expect(recorder.session(newId())).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(recorder.settleDelivery(newId(), 'sent')).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(recorder.beginCall(intentFact(newId(), 0, '{}'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
      const sessionId = await opened()
      await recorder.closeSession(sessionId, 5)
      await expect(recorder.beginCall(intentFact(sessionId, 0, '{}'))).rejects.toMatchObject({ code: 'SESSION_CLOSED' })
      expect((await recorder.session(sessionId)).closedAt).toBe(5)
    })

    it('takes a place in a session once', async () => {
      const sessionId = await opened()
      await began(sessionId, 0)
      await expect(began(sessionId, 0)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    })

    it('lets later deliveries count, marks a replaced answer, keeps events in order', async () => {
      const rolloutId = newId()
      const session = sessionFact({ rolloutId })
      await recorder.openSession(session)
      const intent = await began(session.id)
      await recorder.commitCall(commitFact(intent, []))
      await recorder.settleDelivery(intent.id, 'sent')
      await recorder.settleDelivery(intent.id, 'echoed')
      await recorder.supersede(intent.id, newId())
      const events = ['first', 'second'].map((label) => ({
        id: newId(),
        at: 1,
        rolloutId,
        sessionId: session.id,
        kind: 'label' as const,
        name: label,
        value: '\u2028"',
      }))
      for (const event of events) await recorder.appendEvent(event)
      const log = await recorder.session(session.id)
      expect(log.calls[0]).toMatchObject({ delivery: 'echoed', superseded: true })
      expect(log.events).toEqual(events)
      expect(await recorder.events({ rolloutId })).toEqual(events)
    })

    it('tells the last delivery, also where one was told before the call had ended', async () => {
      const sessionId = await opened()
      const intents = [await began(sessionId, 0), await began(sessionId, 1)]
      for (const intent of intents) await recorder.settleDelivery(intent.id, 'unknown')
      // Once in a transaction of its own, once in that of the end.
      await recorder.flush()
      for (const intent of intents) {
        await recorder.commitCall(commitFact(intent, []))
        await recorder.settleDelivery(intent.id, 'sent')
      }
      await recorder.flush()
      await recorder.settleDelivery(intents[1]?.id ?? '', 'echoed')
      expect((await recorder.session(sessionId)).calls.map(({ delivery }) => delivery)).toEqual(['sent', 'echoed'])
    })

    it('tells parents before children, in whatever order the calls began', async () => {
      const sessionId = await opened()
      const [first, second] = [await began(sessionId, 0), await began(sessionId, 1)]
      const parent = promptFact(second, ids(3))
      const child = promptFact(first, ids(2), { segmentId: parent.id, offset: 3 })
      await recorder.commitCall(commitFact(second, [parent]))
      await recorder.commitCall(commitFact(first, [child]))
      recorder = await made.restart()
      const { segments } = await recorder.session(sessionId)
      expect(segments.map(({ id, callId }) => [id, callId])).toEqual([
        [parent.id, second.id],
        [child.id, first.id],
      ])
    })

    it('marks calls in flight as interrupted when it is opened again', async () => {
      const sessionId = await opened()
      const done = await began(sessionId, 0)
      await recorder.commitCall(commitFact(done, []))
      await began(sessionId, 1)
      recorder = await made.restart()
      const outcomes = (await recorder.session(sessionId)).calls.map((call) => call.commit?.outcome.kind)
      expect(outcomes).toEqual(['complete', 'interrupted'])
    })

    it('shows a closed session whole to every reader', async () => {
      const sessionId = await opened()
      const intent = await began(sessionId)
      await recorder.commitCall(commitFact(intent, [promptFact(intent, ids(2))]))
      await recorder.closeSession(sessionId, 7)
      const reader = await made.reader()
      const log = await reader.session(sessionId)
      await reader.close()
      expect([log.closedAt, log.segments.length]).toEqual([7, 1])
    })

    it('hangs a segment on one of another session', async () => {
      const first = await began(await opened())
      const prompt = promptFact(first, ids(3))
      await recorder.commitCall(commitFact(first, [prompt]))
      const forked = await began(await opened())
      const parent = { segmentId: prompt.id, offset: 2 }
      await recorder.commitCall(commitFact(forked, [promptFact(forked, ids(2), parent)]))
      expect((await recorder.session(forked.sessionId)).segments[0]?.parent).toEqual(parent)
      const beyond = await began(await opened())
      await expect(
        recorder.commitCall(commitFact(beyond, [promptFact(beyond, ids(1), { segmentId: prompt.id, offset: 4 })])),
      ).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    })

    it('goes on in a session of before a restart, and still refuses what does not fit', async () => {
      const sessionId = await opened()
      const intent = await began(sessionId)
      const prompt = promptFact(intent, ids(3))
      await recorder.commitCall(commitFact(intent, [prompt]))
      recorder = await made.restart()
      await recorder.settleDelivery(intent.id, 'sent')
      await expect(recorder.commitCall(commitFact(intent, []))).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      await expect(began(sessionId, 0)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
      const next = await began(sessionId, 1)
      const parent = { segmentId: prompt.id, offset: 3 }
      await recorder.commitCall(commitFact(next, [promptFact(next, ids(1), parent)]))
      const log = await recorder.session(sessionId)
      expect(log.calls.map((call) => [call.commit?.outcome.kind, call.delivery])).toEqual([
        ['complete', 'sent'],
        ['complete', 'unknown'],
      ])
      expect(log.segments.map((segment) => segment.parent)).toEqual([null, parent])
    })

    it('takes a thousand calls at once and loses none', async () => {
      const sessionId = await opened()
      await Promise.all(
        Array.from({ length: 1000 }, async (_, seq) => {
          const intent = intentFact(sessionId, seq, `{"n":${seq},"pad":"${'x'.repeat(2000)}"}`)
          await recorder.beginCall(intent)
          await recorder.commitCall(commitFact(intent, [promptFact(intent, ids(8, seq))]))
        }),
      )
      await recorder.flush()
      const reader = await made.reader()
      const log = await reader.session(sessionId)
      await reader.close()
      expect(log.calls.filter((call) => call.commit?.outcome.kind === 'complete')).toHaveLength(1000)
      expect(log.segments).toHaveLength(1000)
    })
  })
}

/** Arrays as lists, so that a Buffer and a Uint8Array compare, and NaN equals NaN. */
function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return { list: [...(value as Uint8Array)] }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]))
  }
  return value
}

function bits(array: Int32Array | Float32Array | Uint8Array | null | undefined): Buffer | null {
  return array == null ? null : Buffer.from(array.buffer, array.byteOffset, array.byteLength)
}
