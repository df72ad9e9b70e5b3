/** No read of the viewer is as long as its run, and what was read once is not read again: counted at the reader's door. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Id, newId } from '../../src/core/index.ts'
import { ViewPages } from '../../src/server/view/pages.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openReader, openStore, type Store, type StoreReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Counted, countedReader } from '../lab/counted-reader.ts'
import { trainRun, type Trainer } from '../lab/trained-run.ts'

const rollouts = 1201
const uses = 3
/** Lines of a page, of each of five kinds where a trainer spoke. */
const mostLines = 5 * 500

let directory: string
let store: Store
let opened: StoreReader
let pages: ViewPages
let counted: Counted
let runId: Id
let taskDigest: string
let trainer: Trainer

beforeAll(async () => {
  directory = tempDir()
  store = await openStore(directory)
  const [sample = ''] = await recordRollouts(store, [{ reward: 1 }])
  const { catalogue } = store
  const view = await catalogue.rollout(sample)
  ;({ runId, taskDigest } = view)
  const first = await catalogue.group(view.groupId)
  for (let at = 1; at < rollouts; at += 8) {
    const groupId = newId()
    await catalogue.putGroup({ ...first, id: groupId, promptVariant: `group ${at}` })
    for (let slot = 0; slot < 8; slot += 1) {
      const id = newId()
      await catalogue.putRollout({ id, runId, groupId, slot, attempt: 0, harness: 'h', createdAt: 1 })
      await catalogue.endRollout(id, 3, 'completed', '')
    }
  }
  trainer = await trainRun(store, runId, { uses })
  opened = await openReader(directory)
  const watched = countedReader(opened)
  ;({ counted } = watched)
  pages = new ViewPages(watched.reader)
})

afterAll(async () => {
  await opened?.close()
  await store?.close()
})

/** Everything that a run's pages show, and its task's. */
async function seen() {
  const rows = await pages.rollouts(runId)
  let task = await pages.task(taskDigest)
  while (!task.read.isWhole) task = await pages.task(taskDigest)
  return {
    rows,
    task,
    run: await pages.run(runId),
    curves: await pages.curves(runId),
    nulls: await pages.nulls(runId),
    groups: await pages.groups(runId),
  }
}

it('reads a run and its task in pages, to the last line', async () => {
  const { rows, task, run, curves, nulls, groups } = await seen()
  expect(rows).toHaveLength(rollouts)
  expect(rows.every(({ handed }) => handed?.age === 0 && handed.given.length === uses)).toBe(true)
  expect(run.read).toMatchObject({ rollouts, of: rollouts, isWhole: true })
  expect(groups).toHaveLength(1 + (rollouts - 1) / 8)
  expect(curves.steps).toEqual([1, 2, 3])
  expect(curves.curves.find(({ name }) => name === 'rows: used')?.values).toEqual([rollouts, 0, rollouts])
  expect(curves.curves.find(({ name }) => name === 'loss')?.values).toEqual([0.5, 1 / 3, 0.25])
  expect(curves.weights).toMatchObject([{ label: 'w1', ordinal: 1, rollouts }])
  expect(nulls.all).toMatchObject({ ended: rollouts, nulls: rollouts - 1, causes: { no_verdict: rollouts - 1 } })
  expect(task.all).toMatchObject({ passed: 1, without: rollouts - 1 })
  expect(task.rows.map(({ weights }) => weights)).toEqual(['w1', 'w1'])
  // Of 1,201 rollouts, as many rows and 3,603 dispositions.
  expect([...counted.largest].filter(([, lines]) => lines > mostLines)).toEqual([])
  expect(counted.largest.get('catalogue.rollouts')).toBe(500)
})

it('reads again only what came since', async () => {
  const again = async (): Promise<number> => {
    counted.total = 0
    await seen()
    return counted.total
  }
  // What a run, its task and its rollouts are called, and nothing of what they hold.
  await expect.poll(again).toBeLessThan(50)
  const some = (await pages.rollouts(runId)).slice(0, 3).map(({ line }) => line.id)
  await trainer.speak(some, 9, uses + 1)
  counted.total = 0
  await expect.poll(async () => (await seen()).curves.steps).toEqual([1, 2, 3, 9])
  expect(
    (await pages.rollouts(runId)).filter(({ handed }) => handed?.given.some(({ step }) => step === 9)),
  ).toHaveLength(3)
  expect(counted.total).toBeLessThan(1000)
  expect([...counted.largest].filter(([, lines]) => lines > mostLines)).toEqual([])
})

it('takes out what a trainer that attaches again goes back behind', async () => {
  await store.trainer.attach(runId, { resumeStep: 2, consumer: null })
  const left = async (): Promise<unknown> => {
    const { rows, curves } = await seen()
    const given = rows.map(({ handed }) => handed?.given.every(({ step }) => step <= 2))
    return { steps: curves.steps, behind: given.includes(false) }
  }
  await expect.poll(left).toEqual({ steps: [1, 2], behind: false })
})
