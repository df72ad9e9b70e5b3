import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId, sha256 } from '../../core/index.ts'
import type { CallCommit, CallIntent, Segment } from '../contract.ts'
import { openStore } from '../store/index.ts'
import { fsck } from './index.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-fsck-'))
})
afterEach(async () => rm(directory, { recursive: true }))

const sampling = {
  temperature: 1,
  topP: null,
  topK: null,
  minP: null,
  presencePenalty: null,
  frequencyPenalty: null,
  repetitionPenalty: null,
  maxTokens: null,
  seed: null,
  stop: [],
  n: 1,
  other: [],
}

/** A store with one session of `calls` answered calls and one blob. */
async function fill(calls = 3): Promise<{ blob: string }> {
  await using store = await openStore(directory, {})
  const sessionId = newId()
  await store.recorder.openSession({
    id: sessionId,
    rolloutId: null,
    role: 'agent',
    policy: {
      strategy: 'record',
      history: 'sampled',
      pin: {},
      clamp: {},
      defaults: {},
      model: null,
      budget: { maxCalls: null, maxSampledTokens: null, maxWallMs: null },
      onDisconnect: 'finish',
    },
    keyDigest: sha256('key'),
    forkedFrom: null,
    createdAt: 1,
    labels: {},
  })
  let parent: Segment['parent'] = null
  for (let seq = 0; seq < calls; seq += 1) {
    const intent = intentOf(sessionId, seq)
    await store.recorder.beginCall(intent)
    const prompt = segmentOf(intent, 'prompt', parent, 40)
    const answer = segmentOf(intent, 'sampled', { segmentId: prompt.id, offset: 40 }, 24)
    parent = { segmentId: answer.id, offset: 24 }
    await store.recorder.commitCall(commitOf(intent, prompt, answer))
  }
  return { blob: await store.blobs.put(Buffer.from('an artifact')) }
}

function intentOf(sessionId: string, seq: number): CallIntent {
  return {
    id: newId(),
    sessionId,
    seq,
    startedAt: 10,
    dialect: 'chat',
    path: '/v1/chat/completions',
    streamed: false,
    requestDigest: sha256(String(seq)),
    retryOf: null,
    lineage: {
      nativeSession: null,
      nativeAgent: null,
      nativeParent: null,
      requestKind: null,
      toolsDigest: null,
      toolCount: 0,
      systemDigest: null,
      userAgent: null,
      modelAsked: null,
      retryCount: null,
      idempotencyKey: null,
    },
    callClass: 'main',
    strategy: 'record',
    asked: sampling,
    used: sampling,
    fingerprint: null,
    headers: {},
    body: Buffer.from(
      JSON.stringify({ messages: Array.from({ length: seq + 1 }, (_, n) => ({ n, text: 'x'.repeat(50) })) }),
    ),
  }
}

function segmentOf(
  intent: CallIntent,
  origin: 'prompt' | 'sampled',
  parent: Segment['parent'],
  length: number,
): Segment {
  return {
    id: newId(),
    sessionId: intent.sessionId,
    callId: intent.id,
    choice: origin === 'sampled' ? 0 : null,
    parent,
    origin,
    tokens: Int32Array.from({ length }, (_, n) => (n * 7919 + intent.seq * 104_729) % 150_000),
    logprobs: origin === 'sampled' ? Float32Array.from({ length }, (_, n) => -n / 8) : null,
    flags: null,
    logprobKind: 'raw',
    policySpans: [],
    replayOf: null,
    stopCut: false,
  }
}

function commitOf(intent: CallIntent, prompt: Segment, answer: Segment): CallCommit {
  return {
    callId: intent.id,
    endedAt: 20,
    firstByteAt: 15,
    fate: { kind: 'complete' },
    choices: [{ index: 0, finishReason: 'stop', segmentId: answer.id, message: '{}', claimedTokens: 24 }],
    segments: [prompt, answer],
    spans: [],
    promptLeaf: prompt.id,
    forks: [],
    claimedPromptTokens: null,
    findings: [],
    status: 200,
    reply: Buffer.from('{"choices":[]}'),
    replyMarks: [{ offset: 0, atMs: 5 }],
    weightVersionBefore: null,
    weightVersionAfter: null,
  }
}

/** Changes the closed store behind its back. */
function damage(sql: string, file = 'log.sqlite'): void {
  const db = new Database(join(directory, file))
  db.pragma('foreign_keys = OFF')
  expect(db.prepare(sql).run().changes).toBe(1)
  db.close()
}

describe('fsck', () => {
  it('finds nothing in a sound store, and counts what is there', async () => {
    await fill()
    const { problems, counts } = await fsck(directory)
    expect(problems).toEqual([])
    expect(counts).toEqual({ sessions: 1, calls: 3, segments: 6, tokens: 192, rollouts: 0, blobs: 1 })
  })

  it('never writes to a database, not even to one that it finds damaged', async () => {
    await fill()
    damage('UPDATE segments SET parent_offset = 99 WHERE n = 3')
    const contents = (): Promise<string[]> =>
      Promise.all(['log.sqlite', 'catalogue.sqlite'].map(async (name) => sha256(await readFile(join(directory, name)))))
    const before = await contents()
    expect((await fsck(directory)).problems).toHaveLength(1)
    expect(await contents()).toEqual(before)
  })

  it.each([
    ['an offset behind its parent', 'UPDATE segments SET parent_offset = 99 WHERE n = 3', /hangs at 99 of 24/],
    ['a segment whose call is gone', 'DELETE FROM outcomes WHERE call = 3', /no committed call|no end/],
    ['a missing call', 'DELETE FROM calls WHERE n = 2', /rows refer to rows|seq|STORE_CORRUPT/],
    ['a changed body digest', 'UPDATE calls SET body_sha256 = zeroblob(32) WHERE n = 2', /STORE_CORRUPT/],
    ['a cut body', 'UPDATE calls SET pack = substr(pack, 1, 20) WHERE n = 1', /./],
    ['cut token ids', 'UPDATE segments SET ids = substr(ids, 1, 9) WHERE n = 4', /./],
  ])('names %s', async (_name, sql, what) => {
    await fill()
    damage(sql)
    const { problems } = await fsck(directory)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.map((problem) => problem.what).join('\n')).toMatch(what)
  })

  it('names a blob that is not what its name says', async () => {
    const { blob } = await fill()
    await writeFile(join(directory, 'blobs', blob.slice(0, 2), blob.slice(2, 4), blob), 'another')
    const { problems } = await fsck(directory)
    expect(problems).toEqual([{ where: `blob ${blob}`, what: expect.stringContaining('STORE_CORRUPT') }])
  })

  it('refuses a directory without a store', async () => {
    await expect(fsck(join(directory, 'nowhere'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})
