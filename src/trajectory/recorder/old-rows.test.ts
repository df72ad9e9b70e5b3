import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../testing/store/index.ts'
import { openReader, openStore } from '../store/index.ts'
import { packBytes } from './codec.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-old-rows-'))
})
afterEach(async () => rm(directory, { recursive: true }))

it('reads segments that hold their columns themselves, as stores of before schema 3 have them, beside new ones', async () => {
  const session = sessionFact()
  const bytesOf = (column: Int32Array | Float32Array) =>
    Buffer.from(column.buffer, column.byteOffset, column.byteLength)
  const tokens = ids(700, 90_000)
  const logprobs = Float32Array.from(tokens, (_, place) => -place / 7)
  const flags = Uint8Array.from(tokens, (_, place) => place % 2)
  {
    await using store = await openStore(directory)
    await store.recorder.openSession(session)
    for (const seq of [0, 1]) {
      const intent = intentFact(session.id, seq, '{}')
      await store.recorder.beginCall(intent)
      const prompt = promptFact(intent, ids(600))
      const answer = sampledFact(intent, tokens, logprobs, { segmentId: prompt.id, offset: 600 }, { flags })
      await store.recorder.commitCall(commitFact(intent, [prompt, answer]))
    }
  }
  const before = await segments()
  const db = new Database(join(directory, 'log.sqlite'))
  const put = db.prepare('UPDATE segments SET ids = ?, logprobs = ?, flags = ? WHERE n = ?')
  put.run(packBytes(bytesOf(ids(600))), null, null, 1)
  put.run(packBytes(bytesOf(tokens)), packBytes(bytesOf(logprobs)), packBytes(flags), 2)
  db.prepare('UPDATE outcomes SET columns = NULL WHERE call = 1').run()
  db.close()
  expect(await segments()).toEqual(before)
  expect(before.map(({ tokens: own }) => own.length)).toEqual([600, 700, 600, 700])

  async function segments() {
    await using reader = await openReader(directory)
    return (await reader.recorder.session(session.id)).segments
  }
})
