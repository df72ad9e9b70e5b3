/** `paddock import --format paddock`: what another Paddock recorded is exported here as it is there. */
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { appendLate } from '../../src/rollout/index.ts'
import { recordRollouts } from '../../src/testing/exporter/index.ts'
import { openStore, runExport } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'

let directory: string
const data = (name: string): string => join(directory, name)
beforeEach(async () => {
  directory = tempDir()
})

async function recorded(name: string): Promise<readonly string[]> {
  await using store = await openStore(data(name))
  return await recordRollouts(store, [{ reward: 1, branch: true }, { reward: 0 }, { end: null }])
}

let made = 0
/** Rows of the rollouts, in an order that says nothing of when they were imported. */
async function rowsOf(name: string, ids: readonly string[]): Promise<readonly string[]> {
  const out = data(`out-${(made += 1)}`)
  await using store = await openStore(data(name))
  const query = { rolloutIds: ids }
  await runExport({ reader: store, exporter: 'jsonl', out, query, paddockVersion: '1.2.3' })
  return (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n').toSorted()
}

const importing = (...names: readonly string[]) =>
  paddock(['import', ...names.map(data), '--format', 'paddock', '--json', '--data', data('here')])

it('takes finished rollouts of two others whole, once, and what has ended since the next time', async () => {
  const [one, other] = [await recorded('one'), await recorded('other')]
  const first = await importing('one', 'other')
  expect(first, first.err).toMatchObject({ code: 0 })
  const none = { different: [] }
  expect(JSON.parse(first.out)).toMatchObject([
    { taken: 2, repeated: 0, unfinished: 1, ...none },
    { taken: 2, repeated: 0, unfinished: 1, ...none },
  ])
  for (const [name, ids] of [
    ['one', one],
    ['other', other],
  ] as const) {
    expect(await rowsOf('here', ids.slice(0, 2))).toEqual(await rowsOf(name, ids.slice(0, 2)))
  }
  {
    await using store = await openStore(data('one'))
    await store.catalogue.endRollout(one[2] ?? '', 9, 'completed', '')
  }
  const second = await importing('one')
  expect(JSON.parse(second.out)).toMatchObject([{ taken: 1, repeated: 2, unfinished: 0, ...none }])
  const checked = await paddock(['fsck', '--data', data('here')])
  expect(checked, checked.out).toMatchObject({ code: 0 })
})

it('says what is here with other content, leaves it, and refuses what would do nothing', async () => {
  const [id = ''] = await recorded('one')
  await cp(data('one'), data('copy'), { recursive: true })
  expect((await importing('one')).code).toBe(0)
  const before = await rowsOf('here', [id])
  {
    await using store = await openStore(data('copy'))
    await appendLate(store, id, { source: 'review', reward: 0.25 })
  }
  const ended = await importing('copy')
  expect(ended.code).toBe(1)
  expect(JSON.parse(ended.out)).toMatchObject([{ taken: 0, repeated: 1, different: [id] }])
  expect(await rowsOf('here', [id])).toEqual(before)
  expect(
    await paddock(['import', data('one'), '--format', 'paddock', '--reward', '1', '--data', data('here')]),
  ).toMatchObject({
    code: 2,
    err: expect.stringContaining('--reward would do nothing'),
  })
  expect(await importing('here')).toMatchObject({ code: 2 })
  expect(await importing('nowhere')).toMatchObject({ code: 2 })
})
