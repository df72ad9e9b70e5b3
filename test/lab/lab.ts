/**
 * One engine, one proxy and one store, with rollouts that are asked in any dialect and then judged: exported, and the
 * export held against the engine's journal by the independent comparer.
 */
import { readFile, rm, mkdtemp } from 'node:fs/promises'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, sha256 } from '../../src/core/index.ts'
import {
  createProxy,
  openaiEngine,
  type Proxy,
  type ProxyEvent,
  type ProxyLimits,
  sglangEngine,
  vllmEngine,
} from '../../src/proxy/index.ts'
import {
  fsck,
  type Manifest,
  openReader,
  openStore,
  runExport,
  type SessionLog,
  type SessionPolicy,
  type Store,
} from '../../src/trajectory/index.ts'
import { type FidelityEngine, startEngine, verdictOf } from '../fidelity/world.ts'
import { compare, type Report } from '../fidelity/compare.ts'
import { readJournal, readManifest, readRows, type TrueChoice } from '../fidelity/compare-read.ts'
import type { Asking, DialectName, Json, OfferedTool, Said, Speaker } from './speaker.ts'
import { speakerOf } from './speaker.ts'

/** What a lab is made of. */
export interface LabOptions {
  readonly model?: string
  /** Further flags of the scripted engine. */
  readonly flags?: readonly string[]
  readonly limits?: Partial<ProxyLimits>
  /** Another adapter than vLLM's, for the wire that the flags choose. */
  readonly adapter?: 'vllm' | 'sglang' | 'openai'
  /** Stands between proxy and engine: gets the engine's URL and gives the one to use. */
  readonly between?: (engineUrl: string) => Promise<string>
}

export interface Lab extends AsyncDisposable {
  readonly model: string
  readonly directory: string
  readonly storeDirectory: string
  readonly engine: FidelityEngine
  readonly proxy: Proxy
  readonly store: Store
  readonly origin: string
  readonly events: readonly ProxyEvent[]
  /** Steps of the one candidate of an instruction. */
  script(instruction: string, steps: readonly object[]): Promise<void>
  fault(order: object): Promise<void>
  rollout(policy?: Partial<SessionPolicy>): Promise<LabRollout>
  /** The whole store, by `fsck`. */
  problems(): Promise<readonly object[]>
}

/** A rollout with one session. */
export interface LabRollout {
  readonly id: string
  readonly sessionId: string
  readonly key: string
  /** `<origin>/s/<session>`. */
  readonly root: string
  log(): Promise<SessionLog>
  /** One raw call. */
  post(path: string, body: Json, headers?: Readonly<Record<string, string>>): Promise<RawReply>
  speaker(dialect: DialectName, system?: string): Speaker
  /** Asks in the speaker's dialect and gives the answer as read; it is not yet in the history. */
  ask(speaker: Speaker, asking?: Partial<Asking>, headers?: Readonly<Record<string, string>>): Promise<Said>
  /** What the engine sampled for this session, in its own words. */
  truth(): Promise<readonly TrueChoice[]>
  /** Ends the rollout with a verdict. */
  score(reward: number): Promise<void>
  /** Ends the rollout, exports it and holds it against the journal. */
  judge(query?: object): Promise<Judged>
}

/** An answer as its bytes came. */
export interface RawReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** What an export says and what the comparer says of it. */
export interface Judged {
  readonly report: Report
  readonly manifest: Manifest
  readonly log: SessionLog
  /** Causes of all forks, in order. */
  readonly forks: readonly string[]
  readonly findings: readonly string[]
}

export const shell: OfferedTool = {
  name: 'shell',
  parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
}

/** A tool that takes nothing. */
export const refresh: OfferedTool = { name: 'refresh', parameters: { type: 'object', properties: {} } }

/** Key header of a dialect, as its official client sends it. */
export function keyHeader(dialect: DialectName, key: string): Record<string, string> {
  if (dialect === 'messages') return { 'x-api-key': key }
  return dialect === 'gemini' ? { 'x-goog-api-key': key } : { authorization: `Bearer ${key}` }
}

const adapters = { vllm: vllmEngine, sglang: sglangEngine, openai: openaiEngine }

export async function openLab(options: LabOptions = {}): Promise<Lab> {
  const model = options.model ?? 'scripted-hermes'
  const directory = await mkdtemp(join(tmpdir(), 'paddock-lab-'))
  const storeDirectory = join(directory, 'data')
  const engine = await startEngine(directory, model, options.flags)
  const store = await openStore(storeDirectory)
  const events: ProxyEvent[] = []
  const proxy = createProxy({
    recorder: store.recorder,
    engine: adapters[options.adapter ?? 'vllm']({ url: (await options.between?.(engine.url)) ?? engine.url }),
    putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
    onEvent: (event) => events.push(event),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  })
  const { origin } = await proxy.listen({})
  const group = await openGroup(store)
  let slots = 0
  const lab: Lab = {
    model,
    directory,
    storeDirectory,
    engine,
    proxy,
    store,
    origin,
    events,
    script: async (instruction, steps) => {
      await engine.post('/control/scripts', { instruction, candidates: [{ name: 'only', weight: 0, steps }] })
    },
    fault: async (order) => {
      await engine.post('/control/faults', order)
    },
    rollout: async (policy = {}) => {
      slots += 1
      return openRollout(lab, { ...group, slot: slots }, policy)
    },
    problems: async () => (await fsck(storeDirectory)).problems,
    async [Symbol.asyncDispose]() {
      await proxy.close()
      await store.close()
      await engine[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return lab
}

async function openGroup({ catalogue }: Store): Promise<{ readonly runId: string; readonly groupId: string }> {
  const task = {
    digest: sha256('lab'),
    name: 'lab',
    environment: 'terminal',
    instruction: 'lab',
    split: 'train',
    data: {},
    source: 'test',
  }
  const run = { id: newId(), name: 'lab', createdAt: 1, config: {} }
  const group = { id: newId(), runId: run.id, taskDigest: task.digest, promptVariant: 'default', createdAt: 1 }
  await catalogue.putTask(task)
  await catalogue.putRun(run)
  await catalogue.putGroup(group)
  return { runId: run.id, groupId: group.id }
}

async function openRollout(
  lab: Lab,
  place: { readonly runId: string; readonly groupId: string; readonly slot: number },
  policy: Partial<SessionPolicy>,
): Promise<LabRollout> {
  const { catalogue, recorder } = lab.store
  const id = newId()
  await catalogue.putRollout({ id, ...place, attempt: 0, harness: 'script', createdAt: 1 })
  await catalogue.startRollout(id, 10)
  const { session, key } = await lab.proxy.openSession({
    rolloutId: id,
    role: 'agent',
    policy: { strategy: 'record', history: 'template', ...policy },
  })
  const root = `${lab.origin}/s/${session.id}`
  const rollout: LabRollout = {
    id,
    sessionId: session.id,
    key,
    root,
    log: () => recorder.session(session.id),
    post: (path, body, headers = {}) => post(`${root}${path}`, body, headers),
    speaker: (dialect, system = 'Take care.') => speakerOf(dialect, system),
    ask: async (speaker, asking = {}, headers = {}) => {
      const asked = { model: lab.model, stream: false, maxTokens: 600, tools: [shell], ...asking }
      const { path, body } = speaker.request(asked)
      const reply = await post(`${root}${path}`, body, { ...keyHeader(speaker.dialect, key), ...headers })
      if (reply.status !== 200) throw new Error(`${reply.status} ${reply.text}`)
      return speaker.read(reply.text, asked.stream)
    },
    score: async (reward) => {
      await lab.proxy.closeSession(session.id)
      await catalogue.endRollout(id, 20, 'completed', '')
      await catalogue.appendVerdict(verdictOf(id, reward))
    },
    truth: () => truthOf(lab.engine.journal, session.id),
    judge: async (query = {}) => {
      await lab.proxy.closeSession(session.id)
      await catalogue.endRollout(id, 20, 'completed', '')
      const out = join(lab.directory, `export-${id}`)
      const manifest = await (async () => {
        await using reader = await openReader(lab.storeDirectory)
        return await runExport({
          reader,
          exporter: 'jsonl',
          out,
          query: { rolloutIds: [id], ...query },
          paddockVersion: '0.0.0',
        })
      })()
      const report = compare(
        await truthOf(lab.engine.journal, session.id),
        await readRows(out),
        await readManifest(out),
      )
      const log = await recorder.session(session.id)
      return {
        report,
        manifest,
        log,
        forks: log.calls.flatMap((call) => call.commit?.forks.map((fork) => fork.cause) ?? []),
        findings: log.calls.flatMap((call) => call.commit?.findings ?? []),
      }
    },
  }
  return rollout
}

/** The journal's answers of a session, once each of its requests is settled on the engine's side. */
async function truthOf(journal: string, sessionId: string): Promise<readonly TrueChoice[]> {
  for (;;) {
    const lines = (await readFile(journal, 'utf8'))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Json)
    const settled = new Set(lines.filter((line) => line.kind === 'delivery').map((line) => line.requestId))
    if (lines.some((line) => line.kind === 'intent' && !settled.has(line.requestId))) continue
    const own = lines.filter((line) => line.headers?.['x-session-id'] === sessionId)
    const ids = new Set(own.map((line) => line.requestId))
    return (await readJournal(journal)).filter((choice) => ids.has(choice.requestId))
  }
}

/** A POST on a connection of its own. */
export async function post(url: string, body: Json, headers: Readonly<Record<string, string>> = {}): Promise<RawReply> {
  const out = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  })
  out.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(chunks).toString(),
  }
}

/** Sends a request, reads its answer's first bytes and hangs up. */
export async function hangUp(url: string, body: Json, headers: Readonly<Record<string, string>>): Promise<void> {
  const out = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', ...headers },
  })
  out.on('error', () => undefined)
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  await once(response, 'data')
  out.destroy()
  await once(out, 'close')
}
