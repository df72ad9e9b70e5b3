import { describe, expect, it } from 'vitest'
import { type EarlierCall, judgeRetry } from './retries.ts'

const call = (callId: string, more: Partial<EarlierCall> = {}): EarlierCall => ({
  callId,
  digest: 'd',
  idempotencyKey: null,
  state: 'answered',
  connected: false,
  sent: true,
  repeated: false,
  ...more,
})
const lost = { sent: false } as const
const running = { state: 'running', sent: false, connected: true } as const
const failed = { state: 'failed' } as const

describe('judgeRetry', () => {
  it.each([
    ['nothing earlier', [], {}, 'fresh'],
    ['an answer that was sent', [call('a')], {}, 'fresh'],
    ['a call that still runs for another client', [call('a', running)], {}, 'fresh'],
    ['another body', [call('a', { ...lost, digest: 'other' })], { retryCount: 1 }, 'fresh'],
    ['an answer nobody got', [call('a', lost)], {}, 'same a'],
    ['a running call that its client left', [call('a', { ...running, connected: false })], {}, 'same a'],
    [
      'two answers nobody got: each retry takes one',
      [call('a', { ...lost, connected: true }), call('b', lost)],
      {},
      'same b',
    ],
    ['a retry mark on a running call', [call('a', running)], { retryCount: 1 }, 'same a'],
    ['a retry mark on an answer that was sent', [call('a'), call('b')], { retryCount: 2 }, 'same b'],
    ['a retry count of zero is no mark', [call('a')], { retryCount: 0 }, 'fresh'],
    ['a failure that was told', [call('a', failed)], {}, 'again a'],
    ['a failure that was told, with a mark', [call('a', failed)], { retryCount: 1 }, 'again a'],
    ['a failure that nobody was told', [call('a', { ...failed, sent: false })], {}, 'again a'],
    [
      'a failure that was repeated already',
      [call('a', { ...failed, repeated: true }), call('b', running)],
      { retryCount: 1 },
      'same b',
    ],
    ['a failure that was told and repeated', [call('a', { ...failed, repeated: true })], {}, 'fresh'],
    ['a failure under another key', [call('a', { ...failed, idempotencyKey: 'k' })], { idempotencyKey: 'l' }, 'fresh'],
    ['a mark whose first try never arrived', [], { retryCount: 1 }, 'fresh'],
    ['the same idempotency key', [call('a', { idempotencyKey: 'k' }), call('b')], { idempotencyKey: 'k' }, 'same a'],
    [
      'another idempotency key',
      [call('a', { ...lost, idempotencyKey: 'k' })],
      { idempotencyKey: 'l', retryCount: 1 },
      'fresh',
    ],
  ] as const)('%s', (_what, earlier, marks, expected) => {
    const judged = judgeRetry(earlier, { digest: 'd', retryCount: null, idempotencyKey: null, ...marks })
    expect(judged.kind === 'fresh' ? 'fresh' : `${judged.kind} ${judged.callId}`).toBe(expected)
  })
})
