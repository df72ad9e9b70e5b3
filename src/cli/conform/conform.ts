import { newId, PaddockError } from '../../core/index.ts'
import { type Harness, recordBoxEvents, type RolloutSummary, runRollouts } from '../../rollout/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import type { CallRecord, ForkFrom, SessionLog } from '../../trajectory/index.ts'
import type { Owner } from '../owner.ts'
import type { Conformance, CopiedFacts, FaultProbe, ReplayFacts, RetryFacts, SubagentFacts } from './contract.ts'
import { echoesOf } from './echo.ts'
import { conformEnvironment } from './environment.ts'
import { type Journal, readJournal } from './exact.ts'
import { appendOf, callsOf, classesOf, deliveredTokens, exactOf, parallelOf, retryOf } from './measure.ts'
import { agentTool } from './offered-tools.ts'
import { type Probe, probes, subagentInstruction, subagentScript, subagentProbe } from './probes.ts'

export interface ConformOptions {
  /** With the scripted engine as its engine. */
  readonly owner: Owner
  /** Makes a provider that tells its boxes' events to the store; null for a harness without a box. */
  readonly sandbox: (onEvent: ReturnType<typeof recordBoxEvents>) => Promise<SandboxProvider>
  readonly harness: Harness
  readonly signal: AbortSignal
  readonly onNote: (line: string) => void
}

/** A probe that was run, with the sessions that the store has of it. */
interface Probed {
  readonly probe: Probe
  readonly rollout: RolloutSummary
  readonly logs: readonly SessionLog[]
}

/** Waiting for the model is not counted; harnesses wait up to a minute before they ask again. */
const budgets = { agentMs: 900_000, agentWallMs: 1_200_000 }

/**
 * Puts a harness to the probes, one run per strategy, and reads what it did from the store and the engine's journal.
 * Throws what a run throws before any rollout (`SANDBOX_UNAVAILABLE`, `BUNDLE_FAILED`), and `ENGINE_ERROR`.
 */
export async function conform(options: ConformOptions): Promise<Conformance> {
  const { harness, owner, signal } = options
  const control = controlOf(owner)
  const probed: Probed[] = []
  for (const strategy of ['record', 'splice'] as const) {
    const own = probes.filter((probe) => probe.strategy === strategy)
    for (const { fault, task } of own) {
      if (fault !== null)
        await post(`${control}/faults`, { ...fault, match: { instruction: task.instruction, nth: 3 } })
    }
    probed.push(...(await runProbes(options, own)))
  }
  const talk = find(probed, 'talk')
  const tool = agentToolOf(talk)
  if (tool !== null) {
    await post(`${control}/scripts`, subagentScript)
    probed.push(...(await runProbes(options, [subagentProbe(tool)])))
  }
  const facts = conformanceOf(harness, probed, await readJournal(control, signal))
  return { ...facts, replay: await replayOf(options, talk), copied: await copiedOf(options, talk.probe) }
}

/** Starts the harness anew on the probe `talk` and answers it as it was answered, up to its last call. */
async function replayOf(options: ConformOptions, talk: Probed): Promise<ReplayFacts | null> {
  const calls = agentCalls(talk)
  const last = calls.at(-1)
  if (last === undefined || talk.rollout.end !== 'completed') return null
  const { rolloutId } = talk.rollout
  const fork: ForkFrom = { rolloutId, callId: last.intent.id, way: 'replay', onDivergence: 'refuse' }
  const harness = { ...options.harness, replays: true as const }
  const [again] = await runProbes({ ...options, harness }, [talk.probe], fork)
  const told = (again?.logs ?? []).flatMap(({ events }) => events.filter((event) => event.kind === 'replay'))
  const arrived = told.some(({ phase }) => phase === 'arrived')
  const differs = told.find(({ phase }) => phase === 'diverged')?.detail ?? 'it ended before its last call'
  const same = told.filter(({ phase }) => phase === 'answered').length + (arrived ? 1 : 0)
  return { same, calls: calls.length, differs: arrived ? null : differs }
}

/** Does the probe again with its box kept at each turn, and goes on from its last call in a copy of that. */
async function copiedOf(options: ConformOptions, probe: Probe): Promise<CopiedFacts | null> {
  const { harness, owner } = options
  const way = harness.place === 'box' ? 'graft' : 'state'
  const offers = harness.place === 'box' ? harness.resumes !== undefined : harness.restores === true
  if (!offers) return null
  await using sandbox = await options.sandbox(recordBoxEvents(owner.store.recorder))
  const [parent] = await runProbes(options, [probe], null, sandbox)
  const last = parent === undefined ? undefined : agentCalls(parent).at(-1)
  if (parent === undefined || last === undefined) return { way, differs: 'it made no call' }
  const { rolloutId } = parent.rollout
  const fork: ForkFrom = { rolloutId, callId: last.intent.id, way, onDivergence: 'refuse' }
  const [child] = await runProbes(options, [probe], fork, sandbox)
  const told = (child?.logs ?? []).flatMap(({ events }) => events.filter((event) => event.kind === 'replay'))
  const other = told.find(({ phase }) => phase !== 'answered' && phase !== 'arrived')
  if (other !== undefined) return { way, differs: other.detail }
  const isThere = told.some(({ phase }) => phase === 'arrived') && child?.rollout.end === 'completed'
  return { way, differs: isThere ? null : `nothing that was seen: it ended as ${child?.rollout.end ?? 'nothing'}` }
}

function conformanceOf(
  harness: Harness,
  probed: readonly Probed[],
  journal: Journal,
): Omit<Conformance, 'replay' | 'copied'> {
  const logs = probed.flatMap((one) => one.logs)
  const all = logs.flatMap((log) => callsOf(log))
  const talk = find(probed, 'talk')
  const splice = find(probed, 'splice')
  const main = agentCalls(talk)
  const plain = [talk, find(probed, 'habits'), find(probed, 'long')]
  const recorded = plain.flatMap((one) => one.logs)
  const clean = [...recorded, ...splice.logs].map((log) => deliveredTokens(log))
  return {
    harness: harness.name,
    version: harness.version,
    place: harness.place,
    dialects: [...new Set(all.map(({ intent }) => intent.dialect))],
    ends: probed.map(({ probe: { name }, rollout: { end, detail, calls } }) => ({ probe: name, end, detail, calls })),
    streams: streamsOf(all),
    tools: Math.max(0, ...main.map(({ intent }) => intent.lineage.toolCount)),
    parallel: parallelOf(main),
    echo: echoesOf(plain.map((one) => agentCalls(one))),
    appendOnly: appendOf(recorded),
    classes: classesOf(all),
    retries: {
      limited: faultFacts(probed, 'limited'),
      failed: faultFacts(probed, 'failed'),
      cut: faultFacts(probed, 'cut'),
    },
    subagents: subagentFacts(probed, agentToolOf(talk)?.name ?? null),
    delivered: ratio(sum(clean, 'delivered'), sum(clean, 'sampled')),
    exact: { record: exactRatio(recorded, journal), splice: exactRatio(splice.logs, journal) },
  }
}

async function runProbes(
  options: ConformOptions,
  own: readonly Probe[],
  fork: ForkFrom | null = null,
  keeping: SandboxProvider | null = null,
): Promise<readonly Probed[]> {
  const { owner, harness, signal, onNote } = options
  const needsBox = harness.place === 'box' || harness.box === 'tools'
  const { recorder } = owner.store
  const opened = needsBox && keeping === null ? await options.sandbox(recordBoxEvents(recorder)) : null
  const sandbox = keeping ?? opened
  try {
    const summary = await runRollouts({
      store: owner.store,
      proxy: owner.proxy,
      inferenceOrigin: owner.listener.origin,
      sandbox,
      environment: conformEnvironment,
      tasks: own.map(({ task }) => task),
      harness,
      model: owner.engine.model,
      runId: newId(),
      name: `conform ${harness.name}`,
      policy: { strategy: own[0]?.strategy ?? 'record' },
      budgets,
      group: { fork },
      snapshotEvery: keeping === null ? null : 1,
      infraRetries: 0,
      limits: { boot: 1, agent: 2, verify: 1 },
      scriptedEngine: { control: controlOf(owner) },
      signal,
      onProgress: (progress) => {
        if (progress.type === 'note') onNote(progress.line)
        if (progress.type === 'ended') onNote(`${harness.name} ${progress.rollout.task.name}: ${progress.rollout.end}`)
      },
    })
    return await Promise.all(
      own.map(async (probe) => {
        const rollout = summary.rollouts.find(({ task }) => task.digest === probe.task.digest)
        if (rollout === undefined) throw new PaddockError('INTERNAL', `no rollout of the probe ${probe.name}`)
        const sessions = await recorder.sessions({ rolloutId: rollout.rolloutId })
        return { probe, rollout, logs: await Promise.all(sessions.map(({ id }) => recorder.session(id))) }
      }),
    )
  } finally {
    await opened?.close()
  }
}

function find(probed: readonly Probed[], name: Probe['name']): Probed {
  const found = probed.find(({ probe }) => probe.name === name)
  if (found === undefined) throw new PaddockError('INTERNAL', `the probe ${name} was not run`)
  return found
}

function agentCalls({ logs }: Probed): readonly CallRecord[] {
  return logs.flatMap((log) => callsOf(log)).filter(({ intent }) => intent.callClass === 'main')
}

function agentToolOf(talk: Probed): ReturnType<typeof agentTool> {
  const [first] = agentCalls(talk)
  const [log] = talk.logs
  return first === undefined || log === undefined ? null : agentTool(log, first, subagentInstruction)
}

function faultFacts(probed: readonly Probed[], name: FaultProbe): RetryFacts {
  const { logs, rollout } = find(probed, name)
  return retryOf(
    logs.flatMap((log) => callsOf(log)),
    rollout.end === 'completed',
  )
}

function subagentFacts(probed: readonly Probed[], tool: string | null): SubagentFacts | null {
  if (tool === null) return null
  const { logs } = find(probed, 'subagent')
  return { tool, calls: classesOf(logs.flatMap((log) => callsOf(log))).subagent ?? 0 }
}

function streamsOf(calls: readonly CallRecord[]): Conformance['streams'] {
  const streamed = calls.filter(({ intent }) => intent.streamed).length
  if (streamed === 0) return 'never'
  return streamed === calls.length ? 'always' : 'sometimes'
}

function exactRatio(logs: readonly SessionLog[], journal: Journal): number | null {
  const counts = logs.map((log) => exactOf(log, journal))
  return ratio(sum(counts, 'exact'), sum(counts, 'trainable'))
}

function sum<K extends string>(counts: readonly Readonly<Record<K, number>>[], key: K): number {
  return counts.reduce((total, one) => total + one[key], 0)
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

function controlOf({ engine }: Owner): string {
  if (engine.scripted !== null) return engine.scripted.control
  throw new PaddockError('USAGE', '`paddock conform` works with the scripted engine only', {
    fix: 'Leave ENGINE_URL and engine.url out.',
  })
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
  if (response.ok) return
  throw new PaddockError('ENGINE_ERROR', `the scripted engine refused ${url}: ${(await response.text()).slice(0, 300)}`)
}
