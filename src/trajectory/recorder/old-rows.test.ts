import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Id } from '../../core/index.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../testing/store/index.ts'
import type { SessionLog } from '../contract/index.ts'
import { fsck } from '../fsck/index.ts'
import { frameOf, Journal } from '../journal/index.ts'
import { readDigest, readId, schemaVersion, storedId } from '../sqlite/index.ts'
import { openReader, openStore } from '../store/index.ts'
import { packBytes, unpackBytes } from './codec.ts'
import { commitEntry, deliveryEntry, intentEntry, type LogEntry } from './entries.ts'
import { intentFacts } from './facts.ts'
import { readHead } from './heads.ts'
import { encodeTexts } from './bodies.ts'
import { outcomeParts } from './outcome.ts'
import { unpackSegmentList } from './segment-list.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-old-rows-'))
})
afterEach(async () => rm(directory, { recursive: true }))

const tokens = ids(700, 90_000)
const logprobs = Float32Array.from(tokens, (_, place) => -place / 7)
const flags = Uint8Array.from(tokens, (_, place) => place % 2)

/** One call: a prompt that hangs on the last answer, and its answer. */
function call(sessionId: Id, seq: number, on: Id | null) {
  const intent = intentFact(sessionId, seq, `{"seq":${seq}}`)
  const prompt = promptFact(intent, ids(600), on === null ? null : { segmentId: on, offset: 700 })
  const answer = sampledFact(intent, tokens, logprobs, { segmentId: prompt.id, offset: 600 }, { flags })
  return { intent, answer, commit: commitFact(intent, [prompt, answer]) }
}

async function read(sessionId: Id): Promise<SessionLog> {
  await using reader = await openReader(directory)
  return reader.recorder.session(sessionId)
}

/** Turns the closed store into one of schema 3: rows of `segments` and `outcomes`, the first call's with columns of their own. */
function makeOld(log: SessionLog): void {
  const db = new Database(join(directory, 'log.sqlite'))
  const number = (table: string, id: Id): unknown =>
    db.prepare(`SELECT n FROM ${table} WHERE id = ?`).pluck().get(storedId(id))
  const put = db.prepare(
    `INSERT INTO segments (id, session, call, choice, parent, parent_offset, origin, stop_cut, length, ids, logprobs, flags)
       VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const { call: n, pack, columns, ended_at, delivery } of db.prepare('SELECT * FROM call_ends').all() as {
    call: number
    pack: Uint8Array
    columns: Uint8Array
    ended_at: number
    delivery: string | null
  }[]) {
    const own = log.segments.filter((segment) => segment.callId === log.calls[n - 1]?.intent.id)
    const bytesOf = (column: Int32Array | Float32Array) =>
      Buffer.from(column.buffer, column.byteOffset, column.byteLength)
    // In the first call of the column's own frame, in the others in the call's.
    const column = (bytes: Uint8Array | null) => (bytes === null ? null : n === 1 ? packBytes(bytes) : Uint8Array.of(3))
    for (const { id, choice, parent, origin, tokens: own_ids, logprobs: own_logprobs, flags: own_flags } of own) {
      put.run(
        storedId(id),
        n,
        choice,
        parent === null ? null : number('segments', parent.segmentId),
        parent?.offset ?? null,
        origin === 'prompt' ? 0 : 1,
        0,
        own_ids.length,
        column(bytesOf(own_ids)),
        column(own_logprobs === null ? null : bytesOf(own_logprobs)),
        column(own_flags),
      )
    }
    const bytes = Buffer.from(unpackBytes(pack))
    const jsonEnd = 8 + (bytes.readUInt32LE(0) % 2 ** 31)
    const json = JSON.parse(bytes.toString('utf8', 8, jsonEnd)) as {
      segments: { choice?: unknown; parent?: unknown }[]
    }
    for (const segment of json.segments) {
      delete segment.choice
      delete segment.parent
    }
    const text = Buffer.from(JSON.stringify(json))
    const head = Buffer.from(bytes.subarray(0, 8))
    head.writeUInt32LE(bytes.readUInt32LE(0) - (jsonEnd - 8) + text.length, 0)
    const outcome = packBytes(Buffer.concat([head, text, bytes.subarray(jsonEnd)]))
    db.prepare('INSERT INTO outcomes (call, ended_at, pack, columns) VALUES (?, ?, ?, ?)').run(
      n,
      ended_at,
      outcome,
      n === 1 ? null : columns,
    )
    if (delivery !== null) db.prepare('INSERT INTO deliveries (call, delivery) VALUES (?, ?)').run(n, delivery)
  }
  db.exec('DROP TABLE call_ends; ALTER TABLE journal DROP COLUMN ends; DELETE FROM schema_version WHERE version > 3')
  expect(schemaVersion(db)).toBe(3)
  db.close()
}

it('reads a store of schema 3 as it was, and goes on in it', async () => {
  const session = sessionFact()
  const [first, second] = [call(session.id, 0, null), call(session.id, 1, null)]
  {
    await using store = await openStore(directory)
    await store.recorder.openSession(session)
    for (const { intent, commit } of [first, second]) {
      await store.recorder.beginCall(intent)
      await store.recorder.commitCall(commit)
      await store.recorder.settleDelivery(intent.id, 'sent')
    }
  }
  const before = await read(session.id)
  makeOld(before)
  const third = call(session.id, 2, second.answer.id)
  {
    await using store = await openStore(directory)
    expect(await store.recorder.session(session.id)).toEqual(before)
    expect(store.recovered.interruptedCalls).toBe(0)
    await expect(store.recorder.commitCall(first.commit)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
    await store.recorder.beginCall(third.intent)
    await store.recorder.commitCall(third.commit)
    await store.recorder.settleDelivery(second.intent.id, 'echoed')
  }
  const after = await read(session.id)
  expect(after.segments.slice(0, 4)).toEqual(before.segments)
  expect(after.segments.slice(4)).toMatchObject([{ parent: { segmentId: second.answer.id, offset: 700 } }, { tokens }])
  expect(after.calls.map(({ delivery }) => delivery)).toEqual(['sent', 'echoed', 'unknown'])
  expect((await fsck(directory)).problems).toEqual([])
})

it('ingests what an owner of before schema 4 left in the journal', async () => {
  const session = sessionFact()
  await (await openStore(directory)).close()
  const journal = new Journal(join(directory, 'log.sqlite'), 50)
  const { intent, answer, commit } = call(session.id, 0, null)
  const texts = { facts: intentFacts(intent, null).text, body: intent.body }
  const [list = '', , ...rest] = commitEntry(commit).parts
  const outcome = JSON.parse(outcomeParts(commit).json) as {
    segments: { choice?: 0; parent?: 0 }[]
  }
  for (const segment of outcome.segments) {
    delete segment.choice
    delete segment.parent
  }
  const segments = unpackSegmentList(Buffer.from(list)).map((listed, place) => {
    const { choice, parent } = commit.segments[place] ?? answer
    return { ...listed, choice, parent }
  })
  for (const entry of [
    { head: { op: 'openSession', session }, parts: [] },
    inJson(intentEntry(intent, encodeTexts(texts, []))),
    {
      head: { op: 'commitCall', id: intent.id, endedAt: commit.endedAt, segments },
      parts: [Buffer.from(JSON.stringify(outcome)), ...rest],
    },
  ]) {
    journal.append(frameOf(entry))
  }
  journal.close()
  await (await openStore(directory)).close()
  const log = await read(session.id)
  expect(log.segments.map(({ id, parent, choice }) => ({ id, parent, choice }))).toEqual(
    commit.segments.map(({ id, parent, choice }) => ({ id, parent, choice })),
  )
  expect(log.segments[1]).toMatchObject({ tokens, logprobs, flags })
  expect((await fsck(directory)).problems).toEqual([])
})

/** An entry as it was written before heads of bytes. */
function inJson({ head, parts }: LogEntry): LogEntry {
  if (!(head instanceof Buffer)) throw new Error('a head of bytes')
  const told = Object.entries(readHead(head)).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Uint8Array ? (name === 'requestDigest' ? readDigest(value) : readId(value)) : value,
  ])
  return { head: Object.fromEntries(told) as LogEntry['head'], parts }
}

it('ingests the heads of before and those of today alike', async () => {
  const session = sessionFact()
  const calls = [call(session.id, 0, null), call(session.id, 1, null)]
  const logs: SessionLog[] = []
  for (const form of [inJson, (entry: LogEntry) => entry]) {
    await rm(directory, { recursive: true })
    await (await openStore(directory)).close()
    const journal = new Journal(join(directory, 'log.sqlite'), 50)
    journal.append(frameOf({ head: { op: 'openSession', session }, parts: [] }))
    for (const { intent, commit } of calls) {
      const texts = { facts: intentFacts(intent, null).text, body: intent.body }
      journal.append(frameOf(form(intentEntry(intent, encodeTexts(texts, [])))))
      journal.append(frameOf(form(commitEntry(commit))))
      journal.append(frameOf(form(deliveryEntry(intent.id, 'echoed'))))
    }
    journal.close()
    await (await openStore(directory)).close()
    expect((await fsck(directory)).problems).toEqual([])
    logs.push(await read(session.id))
  }
  expect(logs[0]).toEqual(logs[1])
  expect(logs[1]?.calls.map(({ intent }) => intent)).toEqual(
    calls.map(({ intent }) => ({ ...intent, body: new Uint8Array(intent.body) })),
  )
  expect(logs[1]?.calls.map(({ delivery }) => delivery)).toEqual(['echoed', 'echoed'])
})
