/** Two stores: a rollout runs in one and is handed in to the other. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { type Id, newId, sha256 } from '../../core/index.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../testing/store/index.ts'
import { fingerprintDigest } from '../catalogue/index.ts'
import { fsck } from '../fsck/index.ts'
import { openStore, type OwnedStore } from '../store/index.ts'
import { takeInRollout, packRollout, type PackedRollout } from './index.ts'

let directory: string
let node: OwnedStore
let here: OwnedStore
beforeEach(async () => {
  directory = tempDir()
  node = await openStore(join(directory, 'node'))
  here = await openStore(join(directory, 'here'))
})
afterEach(async () => {
  await Promise.all([node.close(), here.close()])
})

const task = {
  digest: sha256('task'),
  name: 'one',
  environment: 'none',
  instruction: 'do it',
  split: 'train' as const,
  data: {},
  source: 'here',
}
const run = { id: newId(), name: 'r', createdAt: 1, config: {} }
const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: '', createdAt: 2 }

const engine = {
  engine: 'vllm',
  version: '1',
  model: 'm',
  tokenizer: 't',
  chatTemplate: null,
  parsers: null,
  logprobKind: 'raw' as const,
  speculative: null,
  quantisation: null,
}

/** A rollout of two sessions with retries, events, work, a verdict and a blob, as the node recorded it. */
async function ran(slot = 0, o: { readonly ended: boolean } = { ended: true }): Promise<Id> {
  const { catalogue, recorder, blobs } = node
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
  const fingerprint = await catalogue.putFingerprint(engine)
  await catalogue.putTokenTexts('t', new Map([[1, Uint8Array.from([0xe2, 0x82])]]))
  const id = newId()
  await catalogue.putRollout({ id, runId: run.id, groupId: group.id, slot, attempt: 0, harness: 'shell', createdAt: 3 })
  await catalogue.startRollout(id, 4)
  for (const role of ['agent', 'judge'] as const) {
    const session = sessionFact({ rolloutId: id, role })
    await recorder.openSession(session)
    let parent: { segmentId: Id; offset: number } | null = null
    let first: Id | null = null
    for (let seq = 0; seq < 4; seq += 1) {
      const more = { fingerprint, retryOf: seq === 1 ? first : null }
      const intent = intentFact(
        session.id,
        seq,
        JSON.stringify({ turns: `turn ${slot} `.repeat(50 * (seq + 1)) }),
        more,
      )
      first ??= intent.id
      await recorder.beginCall(intent)
      const prompt = promptFact(intent, ids(200, seq), parent)
      const hangs = { segmentId: prompt.id, offset: 200 }
      const answer = sampledFact(intent, ids(90, slot), new Float32Array(90).fill(-seq / 7), hangs)
      parent = { segmentId: answer.id, offset: 90 }
      await recorder.commitCall(commitFact(intent, [prompt, answer]))
      if (seq === 1) await recorder.supersede(first, intent.id)
      if (seq !== 2) await recorder.settleDelivery(intent.id, seq === 3 ? 'echoed' : 'sent')
    }
    const said = { id: newId(), at: 5, rolloutId: id, sessionId: session.id }
    await recorder.appendEvent({ ...said, kind: 'custom', name: 'note', data: { slot, role } })
    await recorder.closeSession(session.id, 5)
  }
  await recorder.appendEvent({
    id: newId(),
    at: 6,
    rolloutId: id,
    sessionId: null,
    kind: 'label',
    name: 'a',
    value: 'b',
  })
  const artifact = Buffer.from(`artifact of ${slot}`)
  const stored = { path: '/a', sha256: await blobs.put(artifact), sizeBytes: artifact.length }
  await catalogue.appendVerdict({
    id: newId(),
    rolloutId: id,
    at: 7,
    status: 'scored',
    reward: 0.5,
    components: {},
    steps: [],
    evidence: 'ok',
    artifacts: [stored],
    verifier: { id: 'v', version: '1', sha256: sha256('v') },
    trust: 'separate',
    by: 'verifier',
    costTokens: 0,
    supersedes: null,
  })
  await catalogue.label(id, 'who', 'ä')
  await catalogue.taint(id, 'a cause')
  if (o.ended) await catalogue.endRollout(id, 8, 'completed', 'well')
  return id
}

const sent = ({ bytes, digest }: PackedRollout) => ({ bytes, digest, by: 'node-1' })

/** All that a store says of a rollout, but that it was handed in. */
async function told({ recorder, catalogue, blobs }: OwnedStore, id: Id): Promise<unknown> {
  const rollout = await catalogue.rollout(id)
  const sessions = await recorder.sessions({ rolloutId: id })
  const artifacts = rollout.verdicts.flatMap((verdict) => verdict.artifacts)
  return {
    rollout,
    logs: await Promise.all(sessions.map((session) => recorder.session(session.id))),
    events: (await recorder.events({ rolloutId: id })).filter(({ kind }) => kind !== 'handed_in'),
    blobs: await Promise.all(artifacts.map(async (one) => Buffer.from(await blobs.get(one.sha256)).toString())),
    engine: await catalogue.fingerprint(fingerprintDigest(engine)),
    texts: await catalogue.tokenTexts('t', [1]),
    run: await catalogue.run(rollout.runId),
    group: await catalogue.group(rollout.groupId),
    task: await catalogue.task(rollout.taskDigest),
  }
}

async function isClean(): Promise<void> {
  await here.close()
  expect((await fsck(here.directory)).problems).toEqual([])
  here = await openStore(here.directory)
}

it('tells of a rollout that was handed in what the store says in which it ran', async () => {
  const [one, other] = [await ran(0), await ran(1)]
  for (const id of [one, other]) {
    const packed = await packRollout(node, id)
    expect(await takeInRollout(here, sent(packed))).toEqual({ rolloutId: id, repeated: false })
    expect(await told(here, id)).toEqual(await told(node, id))
    const [event] = (await here.recorder.events({ rolloutId: id })).filter(({ kind }) => kind === 'handed_in')
    expect(event).toMatchObject({ digest: packed.digest, sizeBytes: packed.bytes.length, by: 'node-1' })
  }
  await isClean()
  expect(await told(here, one)).toEqual(await told(node, one))
})

it('changes nothing when the same is handed in again, one after the other or at once', async () => {
  const packed = await packRollout(node, await ran())
  expect((await packRollout(node, packed.rolloutId)).digest).toBe(packed.digest)
  const results = await Promise.all([0, 1, 2].map(async () => takeInRollout(here, sent(packed))))
  expect(results.filter(({ repeated }) => !repeated)).toHaveLength(1)
  expect(await takeInRollout(here, sent(packed))).toEqual({ rolloutId: packed.rolloutId, repeated: true })
  expect(await told(here, packed.rolloutId)).toEqual(await told(node, packed.rolloutId))
  expect(
    (await here.recorder.events({ rolloutId: packed.rolloutId })).filter(({ kind }) => kind === 'handed_in'),
  ).toHaveLength(1)
  await isClean()
})

it('refuses other content under the same id, and what ran here', async () => {
  const id = await ran()
  await takeInRollout(here, sent(await packRollout(node, id)))
  const before = await told(here, id)
  await node.catalogue.label(id, 'more', 'later')
  await expect(takeInRollout(here, sent(await packRollout(node, id)))).rejects.toMatchObject({ code: 'HANDIN_OTHER' })
  await expect(takeInRollout(node, sent(await packRollout(node, id)))).rejects.toMatchObject({ code: 'HANDIN_OTHER' })
  expect(await told(here, id)).toEqual(before)
})

it('stores nothing of what is cut off or changed, wherever, even where its digest was made anew', async () => {
  const { bytes, digest, rolloutId } = await packRollout(node, await ran())
  for (let cut = 0; cut < bytes.length; cut += Math.ceil(bytes.length / 24)) {
    const short = bytes.subarray(0, cut)
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(cut) ^ 1, cut)
    for (const wrong of [short, changed]) {
      for (const said of [digest, sha256(wrong)]) {
        const refused = takeInRollout(here, { bytes: wrong, digest: said, by: 'node-1' })
        await expect(refused).rejects.toMatchObject({ code: 'HANDIN_DAMAGED' })
      }
    }
  }
  expect(await here.recorder.sessions()).toEqual([])
  expect(await here.recorder.events({ rolloutId })).toEqual([])
  await expect(here.catalogue.rollout(rolloutId)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await isClean()
})

it('completes a hand-in that was killed before, between and behind its parts', async () => {
  for (const [slot, fails] of (['putRollout', 'takeIn', 'appendVerdict', 'endRollout'] as const).entries()) {
    const packed = await packRollout(node, await ran(slot))
    const dead = async (): Promise<never> => Promise.reject(new Error('killed'))
    const { recorder, catalogue, blobs } = here
    const dying = {
      recorder: dyingAt(recorder, fails, dead),
      catalogue: dyingAt(catalogue, fails, dead),
      blobs,
    }
    await expect(takeInRollout(dying, sent(packed))).rejects.toThrow('killed')
    const view = await here.catalogue.rollout(packed.rolloutId).catch(() => null)
    expect(view?.end ?? null).toBe(null)
    await here.close()
    here = await openStore(here.directory)
    expect(here.recovered.interruptedCalls).toBe(0)
    await takeInRollout(here, sent(packed))
    expect(await told(here, packed.rolloutId)).toEqual(await told(node, packed.rolloutId))
  }
  await isClean()
})

it('packs no rollout that goes on', async () => {
  const id = await ran(0, { ended: false })
  await expect(packRollout(node, id)).rejects.toMatchObject({ code: 'STORE_CONFLICT' })
})

it('takes one in that is unverified, and what it comes to here stays when it is handed in again', async () => {
  const id = await ran(0, { ended: false })
  const artifacts = [{ path: '/a', sha256: await node.blobs.put(Buffer.from('left')), sizeBytes: 4 }]
  const figures = { calls: 8, sampledTokens: 720, agentMs: 3, at: 9, fault: null, shared: false, answered: true }
  await node.catalogue.putWork(id, { end: 'completed', detail: 'well', artifacts, ...figures })
  const packed = await packRollout(node, id)
  expect(await takeInRollout(here, sent(packed))).toEqual({ rolloutId: id, repeated: false })
  expect(await told(here, id)).toEqual(await told(node, id))
  expect(await here.catalogue.rollout(id)).toMatchObject({ end: null, work: { artifacts } })
  expect(Buffer.from(await here.blobs.get(artifacts[0]?.sha256 ?? '')).toString()).toBe('left')
  await here.catalogue.endRollout(id, 10, 'completed', 'verified here')
  expect(await takeInRollout(here, sent(packed))).toEqual({ rolloutId: id, repeated: true })
  expect(await here.catalogue.rollout(id)).toMatchObject({ end: 'completed', endDetail: 'verified here' })
  await isClean()
})

/** The same, but that one of its methods fails. */
function dyingAt<Part extends object>(part: Part, method: string, dead: () => Promise<never>): Part {
  return new Proxy(part, {
    get: (target, name) => {
      if (name === method) return dead
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
