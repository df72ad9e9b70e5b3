/**
 * What one request of a node costs coordinator and PostgreSQL, in CPU: asked of a real coordinator, whose runs leave nothing to claim.
 * And what a hand-in costs for each MB of it: between two stores of this process.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { NodeClient } from '../../src/cli/node/client.ts'
import { newId, sha256 } from '../../src/core/index.ts'
import { commitFact, intentFact, promptFact, sampledFact, sessionFact } from '../../src/testing/store/index.ts'
import { openStore, type OwnedStore, packRollout, takeInRollout } from '../../src/trajectory/index.ts'
import { paddock } from '../../test/cli/paddock.ts'
import { coordinator, started, stopped } from '../../test/cli/running-nodes.ts'
import { startPostgres } from '../../test/world/postgres-server.ts'
import { cpuMsOf, pidsOf, treeOf } from '../processes.ts'
import { type Conversation, conversation } from '../store/conversation.ts'

const engine = {
  engine: 'vllm',
  version: '1',
  model: 'm',
  tokenizer: 't',
  chatTemplate: null,
  parsers: null,
  logprobKind: 'raw',
  speculative: null,
  quantisation: null,
} as const

/** Prints each cost as `costs.ts` has it. */
export async function measure(smoke: boolean): Promise<void> {
  await measureRequests(smoke ? { times: 4, held: 2 } : { times: 1000, held: 100 })
  await measureBytes(smoke ? 4 : 40)
}

/** `held`: jobs that a node has meanwhile. */
async function measureRequests({ times, held }: { readonly times: number; readonly held: number }): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-scale-'))
  const server = await startPostgres()
  try {
    const catalogue = await server.database()
    const here = await coordinator(directory, 'here', undefined, '--catalogue', catalogue)
    const made = await paddock(['token', 'create', '--role', 'node', '--name', 'bench', '--data', here.data])
    const client = new NodeClient({
      origin: here.url,
      token: made.out.trim(),
      signal: new AbortController().signal,
      onUnreachable: console.error,
    })
    const { session, weights } = await client.open({ name: 'bench', labels: [], paddock: '0.1.0' })
    const claim = async (limit = 1) =>
      client.claim(
        session,
        { requestId: newId(), limit, capacity: { places: limit }, without: [], mark: weights.mark, rewound: 0 },
        { waitMs: 0, signal: new AbortController().signal },
      )
    const cost = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      // On a slow machine the session would be over before it ends.
      const beating = setInterval(() => void client.beat(session, []), 10_000)
      for (let n = 0; n < times / 4; n += 1) await work()
      const own = treeOf(here.process.child.pid ?? 0)
      const before = [cpuMsOf(own), cpuMsOf(pidsOf('postgres'))] as const
      for (let n = 0; n < times; n += 1) await work()
      const [coordinatorMs, postgresMs] = [cpuMsOf(own) - before[0], cpuMsOf(pidsOf('postgres')) - before[1]]
      const each = (ms: number): string => (ms / times).toFixed(2)
      clearInterval(beating)
      console.log(
        `${what.padEnd(44)}${each(coordinatorMs).padStart(8)} ms coordinator${each(postgresMs).padStart(8)} ms PostgreSQL`,
      )
    }
    await cost('a claim, no run at work', claim)
    const tasks = new URL('../../examples/tasks/terminal', import.meta.url).pathname
    started([
      'run',
      tasks,
      '--task',
      'log-forensics',
      '--n',
      String(held),
      '--data',
      here.data,
      '--catalogue',
      catalogue,
    ])
    const jobs: Awaited<ReturnType<typeof claim>>[number][] = []
    while (jobs.length < held) {
      jobs.push(...(await claim(held - jobs.length > 64 ? 64 : held - jobs.length)))
      await setTimeout(20)
    }
    await cost('a claim, one run at work, all of it claimed', claim)
    const leases = jobs.map(({ lease }) => lease)
    await cost(`a beat of a node that has ${held} jobs`, () => client.beat(session, leases))
  } finally {
    await stopped()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

/** A rollout of 60 turns and 37,500 tokens, as `bench/store.ts` has it, beside one of a single turn. */
async function measureBytes(rollouts: number): Promise<void> {
  const long = conversation({ turns: 60, firstPrompt: 2000, prompt: 500, sampled: 100 })
  const short = { turns: long.turns.slice(0, 1) }
  const of = async (talk: Conversation): Promise<{ readonly ms: number; readonly bytes: number }> => {
    const directory = await mkdtemp(join(tmpdir(), 'paddock-bench-scale-'))
    const [node, here] = [await openStore(join(directory, 'node')), await openStore(join(directory, 'here'))]
    try {
      const packs = []
      for (let n = 0; n < rollouts; n += 1) packs.push(await packRollout(node, await recorded(node, talk)))
      for (const one of packs.splice(0, rollouts / 4)) await takeInRollout(here, { ...one, by: 'bench' })
      const before = process.cpuUsage()
      for (const one of packs) await takeInRollout(here, { ...one, by: 'bench' })
      await here.recorder.flush()
      const { user, system } = process.cpuUsage(before)
      return { ms: (user + system) / 1000 / packs.length, bytes: packs[0]?.bytes.length ?? 0 }
    } finally {
      await Promise.all([node.close(), here.close()])
      await rm(directory, { recursive: true, force: true })
    }
  }
  const [one, sixty] = [await of(short), await of(long)]
  const perMb = (sixty.ms - one.ms) / ((sixty.bytes - one.bytes) / 2 ** 20)
  console.log(
    `ingesting ${(sixty.bytes / 2 ** 10).toFixed(0)} kB of 37,500 tokens: ${sixty.ms.toFixed(1)} ms, and ${(one.bytes / 2 ** 10).toFixed(0)} kB: ${one.ms.toFixed(1)} ms; ${perMb.toFixed(0)} ms for each MB more`,
  )
}

export async function recorded({ catalogue, recorder }: OwnedStore, talk: Conversation): Promise<string> {
  const [runId, groupId, id] = [newId(), newId(), newId()]
  const task = {
    name: 't',
    environment: 'none',
    instruction: 'do it',
    split: 'train',
    data: {},
    source: 'here',
  } as const
  const taskDigest = sha256('task')
  await catalogue.putTask({ ...task, digest: taskDigest })
  await catalogue.putRun({ id: runId, name: 'r', createdAt: 1, config: {} })
  await catalogue.putGroup({ id: groupId, runId, taskDigest, promptVariant: '', createdAt: 2 })
  await catalogue.putRollout({ id, runId, groupId, slot: 0, attempt: 0, harness: 'shell', createdAt: 3 })
  await catalogue.startRollout(id, 4)
  const fingerprint = await catalogue.putFingerprint(engine)
  const session = sessionFact({ rolloutId: id })
  await recorder.openSession(session)
  let parent: { readonly segmentId: string; readonly offset: number } | null = null
  for (const [seq, { body, newPrompt, sampled, logprobs, reply, replyMarks }] of talk.turns.entries()) {
    const intent = intentFact(session.id, seq, body, { fingerprint })
    await recorder.beginCall(intent)
    const prompt = promptFact(intent, newPrompt, parent)
    const answer = sampledFact(intent, sampled, logprobs, { segmentId: prompt.id, offset: newPrompt.length })
    await recorder.commitCall(commitFact(intent, [prompt, answer], { reply, replyMarks }))
    parent = { segmentId: answer.id, offset: sampled.length }
  }
  await recorder.closeSession(session.id, 5)
  await catalogue.endRollout(id, 8, 'completed', 'well')
  return id
}
