import { expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import { sessionFact } from '../../testing/store/index.ts'
import { frameOf } from '../journal/index.ts'
import { sessionsIn } from './index.ts'

it('remembers nothing of what was read before, be it whole or damaged', () => {
  const session = sessionFact()
  const opened = frameOf({ head: { op: 'openSession', session }, parts: [] })
  const closed = frameOf({ head: { op: 'closeSession', id: session.id, at: 5 }, parts: [] })
  const event = { id: newId(), at: 6, rolloutId: newId(), sessionId: null, kind: 'custom', name: 'n', data: {} }
  const told = frameOf({ head: { op: 'appendEvent', event }, parts: [] })
  const whole = sessionsIn([opened, closed, told])
  expect(whole).toMatchObject({ sessions: [{ session: { id: session.id }, closedAt: 5 }], events: [{ id: event.id }] })
  // Its session is one of before, and not of these frames.
  expect(() => sessionsIn([closed])).toThrow()
  expect(sessionsIn([])).toEqual({ sessions: [], events: [] })
  const damaged = Buffer.from(closed)
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1)
  expect(() => sessionsIn([opened, told, damaged])).toThrow()
  expect(sessionsIn([opened, closed, told])).toEqual(whole)
})
