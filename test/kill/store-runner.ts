/**
 * A store's owner for the kill tests: opens the directory, then writes calls in several sessions at once until it is
 * killed. It prints a line per promise that resolved, so what is printed must be found. `node store-runner.ts DIR`.
 */
import { writeSync } from 'node:fs'
import { openStore } from '../../src/trajectory/index.ts'
import { commitFact, ids, intentFact, promptFact, sampledFact, sessionFact } from '../../src/testing/store/index.ts'

const directory = process.argv[2]
if (directory === undefined) throw new Error('name a directory')

const pause = new Int32Array(new SharedArrayBuffer(4))
const store = await openStore(directory)
say({ ready: process.pid, interrupted: store.recovered.interruptedCalls })
await Promise.all([0, 1, 2, 3].map((lane) => write(lane)))

async function write(lane: number): Promise<never> {
  const session = sessionFact()
  await store.recorder.openSession(session)
  let body = '{"messages":[]}'
  let parent: { segmentId: string; offset: number } | null = null
  for (let seq = 0; ; seq += 1) {
    body = `${body.slice(0, -2)}{"role":"user","content":"lane ${lane} turn ${seq} ${'x'.repeat(200)}"},]}`
    const intent = intentFact(session.id, seq, body)
    await store.recorder.beginCall(intent)
    say({ began: intent.id, session: session.id, bodyBytes: intent.body.byteLength })
    const prompt = promptFact(intent, ids(50, seq), parent)
    const answer = sampledFact(intent, ids(30, seq), new Float32Array(30).fill(-seq / 7), {
      segmentId: prompt.id,
      offset: 50,
    })
    await store.recorder.commitCall(commitFact(intent, [prompt, answer]))
    say({ committed: intent.id, session: session.id, seq })
    parent = { segmentId: answer.id, offset: 30 }
    if (seq % 8 === 0) say({ blob: await store.blobs.put(Buffer.from(`${lane} ${seq} ${process.pid}`)) })
  }
}

/** Straight to the pipe: nothing of ours may sit in a buffer when the kill comes. */
function say(line: object): void {
  let rest = Buffer.from(`${JSON.stringify(line)}\n`)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      // The pipe is full because whoever reads it has no time.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
      Atomics.wait(pause, 0, 0, 1)
    }
  }
}
