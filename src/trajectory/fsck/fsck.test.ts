import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { beforeEach, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { sha256 } from '../../core/index.ts'
import { commitFact, intentFact, promptFact, sampledFact, sessionFact } from '../../testing/store/index.ts'
import type { Segment } from '../contract/index.ts'
import { frameOf, Journal } from '../journal/index.ts'
import { encodeTexts } from '../recorder/bodies.ts'
import { commitEntry, intentEntry } from '../recorder/entries.ts'
import { intentFacts } from '../recorder/facts.ts'
import { openStore } from '../store/index.ts'
import { fsck } from './index.ts'

let directory: string
beforeEach(async () => {
  directory = tempDir()
})

/** A store with one session of `calls` answered calls and one blob. */
async function fill(calls = 3): Promise<{ blob: string }> {
  await using store = await openStore(directory, {})
  const session = sessionFact()
  await store.recorder.openSession(session)
  let parent: Segment['parent'] = null
  for (let seq = 0; seq < calls; seq += 1) {
    const body = JSON.stringify(Array.from({ length: seq + 1 }, (_, n) => ({ n, text: 'x'.repeat(50) })))
    const intent = intentFact(session.id, seq, body)
    await store.recorder.beginCall(intent)
    const prompt = promptFact(intent, tokens(40, seq), parent)
    const answer = sampledFact(intent, tokens(24, seq), new Float32Array(24).fill(-1), {
      segmentId: prompt.id,
      offset: 40,
    })
    parent = { segmentId: answer.id, offset: 24 }
    await store.recorder.commitCall(commitFact(intent, [prompt, answer]))
  }
  return { blob: await store.blobs.put(Buffer.from('an artifact')) }
}

function tokens(length: number, salt: number): Int32Array {
  return Int32Array.from({ length }, (_, n) => (n * 7919 + salt * 104_729) % 150_000)
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
    expect(counts).toEqual({ sessions: 1, calls: 3, unfinished: 0, segments: 6, tokens: 192, rollouts: 0, blobs: 1 })
  })

  it('never writes to a database, not even to one that it finds damaged', async () => {
    await fill()
    damage('UPDATE calls SET body_sha256 = zeroblob(32) WHERE n = 2')
    const contents = (): Promise<string[]> =>
      Promise.all(['log.sqlite', 'catalogue.sqlite'].map(async (name) => sha256(await readFile(join(directory, name)))))
    const before = await contents()
    expect((await fsck(directory)).problems).not.toEqual([])
    expect(await contents()).toEqual(before)
  })

  it.each([
    ['a call whose end is gone', 'DELETE FROM call_ends WHERE call = 3', /1 of its records are missing/],
    ['a segment whose parent is gone', 'DELETE FROM call_ends WHERE call = 2', /record \d of session .* is missing/],
    ['a missing call', 'DELETE FROM calls WHERE n = 2', /rows refer to rows|seq|STORE_CORRUPT/],
    ['a changed body digest', 'UPDATE calls SET body_sha256 = zeroblob(32) WHERE n = 2', /STORE_CORRUPT/],
    [
      'a changed token',
      'UPDATE call_ends SET pack = CAST(substr(pack, 1, length(pack) - 60) || zeroblob(60) AS BLOB) WHERE call = 2',
      /does not have its digest/,
    ],
    ['a cut body', 'UPDATE calls SET pack = substr(pack, 1, 20) WHERE n = 1', /./],
    [
      'token ids of another length',
      "UPDATE call_ends SET segments = CAST(substr(segments, 1, length(segments) - 1) || x'19' AS BLOB) WHERE call = 2",
      /STORE_CORRUPT/,
    ],
    [
      'a list of segments that is cut',
      'UPDATE call_ends SET segments = substr(segments, 1, 9) WHERE call = 2',
      /STORE_CORRUPT/,
    ],
  ])('names %s', async (_name, sql, what) => {
    await fill()
    damage(sql)
    const { problems } = await fsck(directory)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.map((problem) => problem.what).join('\n')).toMatch(what)
  })

  it('names an offset behind its parent', async () => {
    await fill()
    const session = sessionFact()
    const intent = intentFact(session.id, 0, '{}')
    const prompt = promptFact(intent, tokens(4, 0))
    const beyond = promptFact(intent, tokens(4, 0), { segmentId: prompt.id, offset: 99 })
    // Past the recorder, which refuses it.
    const journal = new Journal(join(directory, 'log.sqlite'), 50)
    for (const entry of [
      { head: { op: 'openSession', session }, parts: [] },
      intentEntry(intent, encodeTexts({ facts: intentFacts(intent, null).text, body: intent.body }, [])),
      commitEntry(commitFact(intent, [prompt, beyond])),
    ]) {
      journal.append(frameOf(entry))
    }
    journal.close()
    await (await openStore(directory)).close()
    const { problems } = await fsck(directory)
    expect(problems.map(({ what }) => what)).toEqual([expect.stringContaining('hangs at 99 of 4')])
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
