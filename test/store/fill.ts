/**
 * A store with sessions, rollouts, verdicts and blobs for the damage tests. `node fill.ts DIR SESSIONS close|kill`: closed
 * in order, or killed with calls in flight and facts that only the journal has.
 */
import { newId, sha256, type Verdict } from '../../src/core/index.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../src/testing/store/index.ts'
import { openStore, type Segment } from '../../src/trajectory/index.ts'

const [directory, sessions, end] = process.argv.slice(2)
if (directory === undefined) throw new Error('name a directory')

const store = await openStore(directory)
const { catalogue, recorder, blobs } = store
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
await catalogue.putTask(task)
await catalogue.putRun(run)
await catalogue.putGroup(group)
for (let place = 0; place < Number(sessions); place += 1) {
  const isLast = place === Number(sessions) - 1
  const rolloutId = newId()
  await catalogue.putRollout({
    id: rolloutId,
    runId: run.id,
    groupId: group.id,
    slot: place,
    attempt: 0,
    harness: 'shell',
    createdAt: 3,
  })
  await catalogue.startRollout(rolloutId, 4)
  const session = sessionFact({ rolloutId })
  await recorder.openSession(session)
  if (isLast) await recorder.flush()
  let parent: Segment['parent'] = null
  for (let seq = 0; seq < 4; seq += 1) {
    const intent = intentFact(session.id, seq, JSON.stringify({ place, turns: 'turn '.repeat(50 * (seq + 1)) }))
    await recorder.beginCall(intent)
    const prompt = promptFact(intent, ids(200, seq), parent)
    const answer = sampledFact(intent, ids(90, place), new Float32Array(90).fill(-seq / 7), {
      segmentId: prompt.id,
      offset: 200,
    })
    parent = { segmentId: answer.id, offset: 90 }
    await recorder.commitCall(commitFact(intent, [prompt, answer]))
    await recorder.settleDelivery(intent.id, 'sent')
  }
  if (isLast && end === 'kill') await recorder.beginCall(intentFact(session.id, 4, '{"in":"flight"}'))
  else {
    await recorder.closeSession(session.id, 5)
    await catalogue.endRollout(rolloutId, 6, 'completed', '')
    await catalogue.label(rolloutId, 'who', `label ${place}`)
    const artifact = Buffer.from(`artifact ${place % 10} `.repeat(20))
    const verdict: Verdict = {
      id: newId(),
      rolloutId,
      at: 7,
      status: 'scored',
      reward: place / 7,
      components: {},
      steps: [],
      evidence: 'ok',
      artifacts: [{ path: '/a', sha256: await blobs.put(artifact), sizeBytes: artifact.length }],
      verifier: { id: 'v', version: '1', sha256: sha256('v') },
      trust: 'separate',
      by: 'verifier',
      costTokens: 0,
      supersedes: null,
    }
    await catalogue.appendVerdict(verdict)
  }
}
if (end === 'kill') process.kill(process.pid, 'SIGKILL')
await store.close()
