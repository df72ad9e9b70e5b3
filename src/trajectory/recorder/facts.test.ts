import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { intentFact, sessionFact } from '../../testing/store/index.ts'
import type { CallIntent } from '../contract/index.ts'
import { openReader, openStore } from '../store/index.ts'
import { intentFacts, isSame } from './facts.ts'

/** The facts of an intent that are stored as text. */
type StoredFact = Exclude<keyof CallIntent, 'id' | 'sessionId' | 'seq' | 'startedAt' | 'requestDigest' | 'body'>

const seed = 20_261_122
console.log(`facts: seed ${seed}`)

describe('the text of facts', () => {
  const headers = fc.dictionary(fc.constantFrom('a', 'content-length', 'x-ä'), fc.constantFrom('1', '12', 'ö'))
  const more = fc.record({
    headers,
    retryOf: fc.constantFrom(null, 'x'),
    path: fc.constantFrom('/v1', '/ü'),
    streamed: fc.boolean(),
  })

  it('is that of the facts, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(more, { minLength: 1, maxLength: 8 }), (list) => {
        let last = null
        for (const some of list) {
          const intent = intentFact('s', 0, '', some)
          last = intentFacts(intent, last)
          const { id: _id, sessionId: _session, seq: _seq, startedAt: _at, requestDigest: _digest, ...rest } = intent
          const { body: _body, ...facts } = rest
          expect(JSON.parse(last.text.toString())).toEqual(facts)
        }
      }),
      { seed },
    )
  })

  it('is that of before only where every fact is the same', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (one, other) => {
        expect(isSame(one, JSON.parse(JSON.stringify(one)))).toBe(true)
        if (isSame(one, other)) expect(other).toEqual(one)
      }),
      { seed },
    )
    expect(isSame({ a: undefined, b: 1 }, { b: 1, c: 2 })).toBe(false)
    expect(isSame({ a: 1 }, { a: 1, b: 2 })).toBe(false)
    expect(isSame([1], { 0: 1 })).toBe(false)
  })

  it('keeps each fact of a call that differs from the call before, whichever it is', async () => {
    const directory = tempDir()
    const session = sessionFact()
    const first = intentFact(session.id, 0, '{}')
    const params = { ...first.used, temperature: 0.123 }
    // Exhaustive by its type: a new fact does not compile until it is tried here.
    const others: Readonly<{ [Fact in StoredFact]: CallIntent[Fact] }> = {
      dialect: 'gemini',
      path: '/other',
      streamed: !first.streamed,
      retryOf: first.id,
      lineage: { ...first.lineage, harness: 'another' } as CallIntent['lineage'],
      callClass: first.callClass === 'title' ? 'main' : 'title',
      strategy: first.strategy === 'splice' ? 'record' : 'splice',
      asked: params,
      used: params,
      fingerprint: 'f'.repeat(64),
      headers: { 'x-other': '1' },
    }
    const changed = Object.entries(others).map(([fact, other], place) => ({
      ...intentFact(session.id, 2 * place + 1, '{}'),
      [fact]: other,
    }))
    const intents = [first, ...changed.flatMap((one, place) => [one, intentFact(session.id, 2 * place + 2, '{}')])]
    {
      await using store = await openStore(directory)
      await store.recorder.openSession(session)
      for (const intent of intents) await store.recorder.beginCall(intent)
    }
    await using reader = await openReader(directory)
    const { calls } = await reader.recorder.session(session.id)
    const plain = (intent: CallIntent): object => ({ ...intent, body: Buffer.from(intent.body) })
    expect(calls.map(({ intent }) => plain(intent))).toEqual(intents.map(plain))
  })

  it('comes back with every call, with and without bodies', async () => {
    const directory = tempDir()
    const session = sessionFact()
    const intents = fc
      .sample(more, { numRuns: 150, seed })
      // Each twice, so that many have the facts of the call before.
      .flatMap((some) => [some, some])
      .map((some, seq) => intentFact(session.id, seq, `{"a":"${'x'.repeat(seq)}"}`, some))
    {
      await using store = await openStore(directory)
      await store.recorder.openSession(session)
      for (const intent of intents) await store.recorder.beginCall(intent)
    }
    await using reader = await openReader(directory)
    for (const bodies of ['all', []] as const) {
      const { calls } = await reader.recorder.session(session.id, { bodies })
      const expected = intents.map((intent) => (bodies === 'all' ? intent : { ...intent, body: new Uint8Array(0) }))
      expect(calls.map(({ intent }) => ({ ...intent, body: Buffer.from(intent.body) }))).toEqual(
        expected.map((intent) => ({ ...intent, body: Buffer.from(intent.body) })),
      )
    }
  })
})
