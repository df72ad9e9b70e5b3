/** What a teacher over the network makes of a recorded rollout, and what the task's own verifier says of it. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { createToken } from '../../src/access/index.ts'
import { openReader } from '../../src/trajectory/index.ts'
import { type SharedServe, useServe } from '../fixtures/use-serve.ts'
import { type Json, Trainer } from './trainer.ts'

let serving: SharedServe
let trainer: Trainer
let original: string
let gold: string

beforeAll(async () => {
  serving = await useServe()
  trainer = new Trainer(serving, serving.token)
  await trainer.ask('POST', '/runs', { run_id: 'rewrites', environment: 'sql', tasks: 'records:0:1' })
  await trainer.attach('rewrites')
  await trainer.ask('POST', '/runs/rewrites/groups', {
    groups: [{ group_id: 'rewrites-g', task: 'records-0-l1', n: 1 }],
  })
  await trainer.claim('rewrites', { wait_s: 60 })
  await using store = await openReader(serving.data)
  const [rollout] = await store.catalogue.rollouts({ groupId: 'rewrites-g' })
  original = rollout?.id ?? ''
  const { golds } = (await store.catalogue.task(rollout?.taskDigest ?? '')).data as {
    readonly golds: readonly string[]
  }
  gold = golds[0] ?? ''
})

const say = (content: string) => [{ from: 2, to: null, messages: [{ role: 'assistant', content }] }]
const at = () => `/rollouts/${original}/rewrites`

describe('rewrites', () => {
  it('come in whole, scored where they have an answer, and the same again are the same', async () => {
    const rewrites = [
      { by: 'teacher', reason: 'shorter', edits: say('The count, at once.'), answer: gold },
      { by: 'teacher', edits: say('Another.'), answer: 'SELECT 0 - 1' },
      { by: 'teacher', edits: say('Nobody looked at this.') },
    ]
    const made = await trainer.ask('POST', at(), { rewrites })
    expect(made).toMatchObject({
      is_new: true,
      taken: 3,
      rollouts: [
        { status: 'scored', reward: 1 },
        { status: 'scored', reward: 0 },
        { status: null, reward: null },
      ],
    })
    expect(await trainer.ask('POST', at(), { rewrites })).toEqual({ ...made, is_new: false, taken: 0 })
    await using store = await openReader(serving.data)
    const [first] = (made as unknown as { readonly rollouts: readonly { readonly rollout_id: string }[] }).rollouts
    const rollout = await store.catalogue.rollout(first?.rollout_id ?? '')
    expect(rollout).toMatchObject({
      harness: 'rewritten',
      labels: { 'rewritten.from': original, 'rewritten.by': 'teacher' },
    })
  })

  it('are refused by name with nothing written: one that does not fit, one of nothing, more than may be', async () => {
    const runs = async () => {
      await using store = await openReader(serving.data)
      return (await store.catalogue.runs()).length
    }
    const before = await runs()
    const good = { by: 't', edits: say('Whole.') }
    const refused = (rewrites: readonly Json[]) => trainer.refused('POST', at(), { rewrites })
    expect(await refused([good, { ...good, edits: [{ from: 900, messages: [] }] }])).toEqual([400, 'REWRITE_REFUSED'])
    expect(await refused([])).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await refused([{ ...good, rollout: original }])).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await refused(Array.from({ length: 257 }, () => good))).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await trainer.refused('POST', '/rollouts/none/rewrites', { rewrites: [good] })).toEqual([404, 'NOT_FOUND'])
    expect(await runs()).toBe(before)
    const { token } = await createToken(serving.data, { name: 'looks', role: 'view', days: 1, now: Date.now() })
    expect((await new Trainer(serving, token).send('POST', at(), { rewrites: [good] })).status).toBe(403)
  })

  it('are asked for by the Python client', async () => {
    const program = `
import json, os
from paddock_rl import Paddock
edits = [{"from": 2, "to": None, "messages": [{"role": "assistant", "content": "By Python."}]}]
print(json.dumps(Paddock(os.environ["PADDOCK_CONTROL_URL"]).rewrite(os.environ["ROLLOUT"], [{"by": "python", "edits": edits}])))`
    const env = {
      ...process.env,
      PYTHONPATH: fileURLToPath(new URL('../../clients/python/src', import.meta.url)),
      PADDOCK_CONTROL_URL: serving.ready.control,
      PADDOCK_CONTROL_TOKEN: serving.token,
      ROLLOUT: original,
    }
    const { stdout } = await promisify(execFile)('python3', ['-c', program], { env })
    expect(JSON.parse(stdout)).toMatchObject({ taken: 1, rollouts: [{ reward: null }] })
  })
})
