/** Engine, proxy, store and an agent in one place: the whole way from a harness to an export. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { newId, sha256, type Verdict } from '../../src/core/index.ts'
import { createProxy, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { openStore, type Store } from '../../src/trajectory/index.ts'
import { askForTitle, type Habits, runAgent } from './agent.ts'

/** The scripted engine as a child process with a journal on disk. */
export interface FidelityEngine extends AsyncDisposable {
  readonly url: string
  readonly journal: string
  post(path: string, body: unknown): Promise<Readonly<Record<string, unknown>>>
}

/** Starts the engine with a profile; `directory` takes its journal. */
export async function startEngine(
  directory: string,
  model: string,
  flags: readonly string[] = [],
): Promise<FidelityEngine> {
  const journal = join(directory, 'journal.jsonl')
  const own = ['--port', '0', '--model', model, '--journal', journal]
  const child = spawn(process.execPath, ['engine/src/main.ts', ...own, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'exit')
  const early = gone.then(([code]) => {
    throw new Error(`the scripted engine ended with ${String(code)} before it was ready`)
  })
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), early])
  early.catch(() => undefined)
  const { url } = JSON.parse(String(line)) as { url: string }
  return {
    url,
    journal,
    async post(path, body) {
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!answer.ok) throw new Error(`engine ${path}: ${answer.status} ${await answer.text()}`)
      return (await answer.json()) as Readonly<Record<string, unknown>>
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await gone
    },
  }
}

/** What was recorded: a store in `directory`, closed, with the engine still there to be asked. */
export interface Recorded extends AsyncDisposable {
  readonly directory: string
  readonly storeDirectory: string
  readonly engine: FidelityEngine
  /** What each agent had in its list of messages at the end. */
  readonly transcripts: readonly (readonly object[])[]
}

const questions = ['Find the wörst file.', 'And now the second: list again.'] as const
const scripts = questions.map((instruction, index) => ({
  instruction,
  candidates: [
    {
      name: 'short',
      weight: 0,
      steps: [
        { think: `Step ${index}: I look at 1.0 and "quotes".` },
        { parallel: [{ shell: 'ls -la "a b"' }, { shell: "printf '%s\\n' 1.0" }] },
        { think: 'Now the size.' },
        { shell: 'du -sh . | sort -h' },
        { say: 'It is a.txt – done.' },
      ],
    },
    {
      name: 'long',
      weight: 0.3,
      steps: [
        { think: 'Otherwise.' },
        { shell: 'ls' },
        { shell: 'wc -c *' },
        { shell: 'stat a.txt' },
        { say: 'b.txt.' },
      ],
    },
  ],
}))

/** Runs two rollouts of one task through the proxy and records them with verdicts. */
export async function record(
  habits: Habits,
  prepare?: (engine: FidelityEngine) => Promise<unknown>,
  wire: 'vllm' | 'sglang' = 'vllm',
): Promise<Recorded> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-fidelity-'))
  const storeDirectory = join(directory, 'data')
  const engine = await startEngine(directory, habits.model, ['--wire', wire])
  await engine.post('/control/scripts', { scripts })
  await prepare?.(engine)
  const store = await openStore(storeDirectory)
  const { catalogue, recorder } = store
  const proxy = createProxy({
    recorder,
    engine: wire === 'vllm' ? vllmEngine({ url: engine.url }) : sglangEngine({ url: engine.url, streamsIds: true }),
    putFingerprint: (fingerprint) => catalogue.putFingerprint(fingerprint),
  })
  const transcripts: (readonly object[])[] = []
  try {
    const listener = await proxy.listen({})
    const rollouts = await putRollouts(store, 2)
    for (const [slot, rolloutId] of rollouts.entries()) {
      const opened = await proxy.openSession({ rolloutId, role: 'agent', policy: { history: 'template' } })
      const endpoint = { baseUrl: opened.baseUrl(listener.origin), key: opened.key }
      transcripts.push(await runAgent(endpoint, habits, questions))
      await askForTitle(endpoint, habits.model)
      await proxy.closeSession(opened.session.id)
      await catalogue.endRollout(rolloutId, 20, 'completed', '')
      await catalogue.appendVerdict(verdictOf(rolloutId, slot))
    }
    await proxy.close()
  } finally {
    await store.close()
  }
  return {
    directory,
    storeDirectory,
    engine,
    transcripts,
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function putRollouts({ catalogue }: Store, count: number): Promise<readonly string[]> {
  const task = {
    digest: sha256('task'),
    name: 'find-file',
    environment: 'terminal',
    instruction: questions[0],
    split: 'train',
    data: {},
    source: 'test',
  }
  const run = { id: newId(), name: 'fidelity', createdAt: 1, config: {} }
  const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: 'default', createdAt: 1 }
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
  const ids = Array.from({ length: count }, () => newId())
  for (const [slot, id] of ids.entries()) {
    await catalogue.putRollout({
      id,
      runId: run.id,
      groupId: group.id,
      slot,
      attempt: 0,
      harness: 'script',
      createdAt: 1,
    })
    await catalogue.startRollout(id, 10)
  }
  return ids
}

/** A verdict that a verifier of tests gave. */
export function verdictOf(rolloutId: string, reward: number): Verdict {
  return {
    id: newId(),
    rolloutId,
    at: 30,
    status: 'scored',
    reward,
    components: { correct: reward },
    steps: [],
    evidence: '',
    artifacts: [],
    verifier: { id: 'test', version: '1', sha256: sha256('verifier') },
    trust: 'host',
    by: 'verifier',
    costTokens: 0,
    supersedes: null,
  }
}
