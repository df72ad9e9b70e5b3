/**
 * Memory of an export, in a process of its own: `export.ts record <directory> <sessions>` fills a store,
 * `export.ts export <directory> <out>` exports all of it and prints what it took.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { recordRollouts } from '../../src/testing/exporter/index.ts'
import { commitFact, intentFact, promptFact, sampledFact, sessionFact } from '../../src/testing/store/index.ts'
import { openReader, openStore, runExport, type Segment, type Store } from '../../src/trajectory/index.ts'
import { conversation } from './conversation.ts'

/** What an export took. */
export interface ExportCost {
  readonly rows: number
  readonly outBytes: number
  readonly seconds: number
  /** The most that was resident at any moment of the process. */
  readonly peakBytes: number
}

const [what, directory, argument] = process.argv.slice(2)
if (directory === undefined || argument === undefined)
  throw new Error('usage: export.ts record|export <directory> <n|out>')
if (what === 'record') await record(directory, Number(argument))
else console.log(JSON.stringify(await exportAll(directory, argument)))

/** Rollouts with a session of 20 turns and 10k tokens each, beside the small one that they come with. */
async function record(path: string, sessions: number): Promise<void> {
  await using store = await openStore(path)
  const talk = conversation({ turns: 20, firstPrompt: 2000, prompt: 300, sampled: 100 })
  const rollouts = await recordRollouts(
    store,
    Array.from({ length: sessions }, () => ({})),
  )
  for (const rolloutId of rollouts) await recordTalk(store, rolloutId, talk)
}

async function recordTalk(store: Store, rolloutId: string, talk: ReturnType<typeof conversation>): Promise<void> {
  const session = sessionFact({ rolloutId })
  await store.recorder.openSession(session)
  let parent: Segment['parent'] = null
  for (const [seq, turn] of talk.turns.entries()) {
    const intent = intentFact(session.id, seq, turn.body, { fingerprint: null })
    await store.recorder.beginCall(intent)
    const prompt = promptFact(intent, turn.newPrompt, parent)
    const at = { segmentId: prompt.id, offset: prompt.tokens.length }
    const answer = sampledFact(intent, turn.sampled, turn.logprobs, at)
    const { reply, replyMarks } = turn
    await store.recorder.commitCall(commitFact(intent, [prompt, answer], { reply, replyMarks }))
    parent = { segmentId: answer.id, offset: answer.tokens.length }
  }
  await store.recorder.closeSession(session.id, 5)
}

async function exportAll(path: string, out: string): Promise<ExportCost> {
  await using reader = await openReader(path)
  const began = performance.now()
  const manifest = await runExport({ reader, exporter: 'jsonl', out, paddockVersion: 'bench' })
  return {
    rows: manifest.rollouts.exported,
    outBytes: readdirSync(out).reduce((sum, name) => sum + statSync(join(out, name)).size, 0),
    seconds: (performance.now() - began) / 1000,
    peakBytes: process.resourceUsage().maxRSS * 1024,
  }
}
