import { describe, expect, it } from 'vitest'
import { intentFact, sessionFact } from '../../testing/store/index.ts'
import { encodeTexts } from './bodies.ts'
import { Ledger, type SessionLedger } from './ledger.ts'

/** As the first of its run a body counts twice: ten of these fit, eleven do not. */
const bodyBytes = 6 * 2 ** 20

function opened(ledger: Ledger): SessionLedger {
  const record = sessionFact()
  ledger.opened(record)
  const session = ledger.session(record.id)
  if (session === undefined) throw new Error('a session that was opened is in mind')
  return session
}

/** Begins a call of so many bytes; tells its id. */
function begin(ledger: Ledger, session: SessionLedger, sizeBytes: number): string {
  const intent = intentFact(session.id, session.calls.length, '')
  const texts = { facts: new Uint8Array(0), body: new Uint8Array(sizeBytes) }
  ledger.checkIntent(session, intent)
  // Not the large one: its digest would take longer than all else.
  const stored = encodeTexts({ ...texts, body: new Uint8Array(1) }, session.recent)
  ledger.began(session, intent, texts, stored)
  return intent.id
}

describe('what the recorder has in mind', () => {
  it('is dropped where it is too much: sessions that nobody called upon, never the one of the call', () => {
    const ledger = new Ledger()
    const neverCalled = opened(ledger)
    const sessions = Array.from({ length: 11 }, () => opened(ledger))
    const calls = sessions.map((session) => begin(ledger, session, bodyBytes))
    const inMind = (): boolean[] => sessions.map(({ id }) => ledger.session(id) !== undefined)
    // All were called upon, the first longest ago.
    expect(inMind()).toEqual(sessions.map((_, place) => place > 0))
    expect(calls.map((id) => ledger.call(id) !== undefined)).toEqual(inMind())
    expect(ledger.session(neverCalled.id)).toBeUndefined()
    const [, second] = sessions
    if (second !== undefined) begin(ledger, second, 1)
    begin(ledger, opened(ledger), bodyBytes)
    expect(inMind()).toEqual(sessions.map((_, place) => place === 1 || place > 2))
  })

  it('keeps the session of a call that is too much alone', () => {
    const ledger = new Ledger()
    const session = opened(ledger)
    begin(ledger, session, 20 * bodyBytes)
    const call = begin(ledger, session, 20 * bodyBytes)
    expect(ledger.call(call)?.session).toBe(session)
  })

  it('refuses what was begun before', () => {
    const ledger = new Ledger()
    const session = opened(ledger)
    const id = begin(ledger, session, 1)
    expect(() => ledger.checkIntent(session, { ...intentFact(session.id, 7, ''), id })).toThrow(/begun before/)
    expect(() => ledger.checkIntent(session, intentFact(session.id, 0, ''))).toThrow(/has a call 0/)
    expect(ledger.call('another')).toBeUndefined()
  })
})
