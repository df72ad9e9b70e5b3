import { type Clock, type Id, newId, PaddockError } from '../core/index.ts'
import type { EngineSide, ProxyEvent, ProxyOptions } from './contract.ts'
import { Counting } from './counting.ts'
import type { EngineAdapter } from './engines/contract.ts'
import { shownUrl } from './engines/http.ts'
import { noEngine, standFor } from './engines/none.ts'
import { anyReplica } from './fleet/any-replica.ts'
import type { FleetLimits, LiveWeights } from './fleet/contract.ts'
import { Fleet } from './fleet/fleet.ts'
import { Generations, type GenerationSurroundings } from './generations.ts'
import { Probes } from './probes/probes.ts'
import { scoreIds } from './scoring.ts'
import { storeSideChannels } from './side-channels.ts'
import { besideTokens } from './tokens/beside.ts'
import { TokenStrategies } from './tokens/choose.ts'

/** What the engines of one proxy share. */
export interface SideSurroundings extends Pick<
  GenerationSurroundings,
  'recorder' | 'clock' | 'keepAliveMs' | 'stallMs' | 'stallTaintMs' | 'admission' | 'limits' | 'draining'
> {
  readonly clock: Clock
  readonly fleetLimits: FleetLimits
  readonly emit: (event: ProxyEvent) => void
  readonly blobs: ProxyOptions['blobs']
  readonly putFingerprint: ProxyOptions['putFingerprint']
  readonly rolloutOf: (sessionId: Id) => Id | null
}

/** One engine with all that asks it: the way to its replicas, token strategies, calls, probes. Those of a proxy with several policies do not know each other. */
export function openEngineSide(
  given: { readonly engine: EngineAdapter | null; readonly replicas: readonly EngineAdapter[] | undefined },
  around: SideSurroundings,
) {
  const { recorder, clock, emit, limits, admission } = around
  const upstream = new Fleet({
    engines: given.engine === null ? [] : [given.engine, ...(given.replicas ?? [])],
    maxInFlight: limits.maxInFlight,
    limits: around.fleetLimits,
    clock,
    emit: (event) => emit({ type: 'engine', ...event }),
    put: around.putFingerprint ?? null,
    renewed: async ({ replica, changed }) => {
      const difference = await strategies.relearn({ changed })
      if (difference !== null) emit({ type: 'engine', what: 'changed', replica, detail: difference })
    },
    waited: ({ callId, sessionId }, waitedMs) => {
      const about = { id: newId(), at: clock.now(), rolloutId: around.rolloutOf(sessionId), sessionId }
      recorder.appendEvent({ ...about, kind: 'engine_wait', callId, waitedMs }).catch(() => {
        // A store that fails here fails the call's commit too, and that one is told.
      })
    },
  })
  // What it is asked is asked of whatever replica there is; where there is none yet, nothing can be.
  let found = given.engine ?? noEngine
  const now = (): EngineAdapter => upstream.engineNow() ?? found
  const asOne = (first: EngineAdapter): EngineAdapter => (given.replicas === undefined ? first : anyReplica(first, now))
  let known = given.engine === null ? noEngine : asOne(given.engine)
  const engine = standFor(() => known)
  const strategiesOf = (): TokenStrategies =>
    new TokenStrategies(engine, upstream, (why) =>
      emit({
        type: 'engine',
        what: 'splice_void',
        replica: shownUrl(now().url),
        detail: `its render: ${why}; auto records`,
      }),
    )
  let strategies = strategiesOf()
  const generations = new Generations({
    ...around,
    engine,
    known: (sessionId) => upstream.knownFor(sessionId),
    besideTokens: besideTokens(upstream),
    keepBeside: (answer, about) =>
      around.blobs === undefined ? null : storeSideChannels(answer, about, { blobs: around.blobs, recorder, clock }),
  })
  const probes = new Probes({
    recorder,
    admission,
    upstream,
    engine: now,
    known: (sessionId) => upstream.knownFor(sessionId)?.facts ?? null,
    clock,
    stallMs: around.stallMs,
    emit,
  })

  async function setEngines(engines: readonly EngineAdapter[], live: LiveWeights | null): Promise<void> {
    const [first] = engines
    if (first === undefined) throw new PaddockError('ENGINE_NONE', 'An engine needs a replica at least.')
    await upstream.set(engines, live)
    found = first
    if (known !== noEngine) return
    known = asOne(first)
    strategies = strategiesOf()
  }

  const told: EngineSide = {
    engine,
    engineStatus: () => upstream.status(),
    engineHealth: () => upstream.health(),
    pauseEngine: (order, elsewhere) => upstream.pause(order, elsewhere),
    resumeEngine: () => upstream.resume(),
    hasEngine: () => known !== noEngine,
    requireEngine: () => {
      if (known === noEngine) throw new PaddockError('ENGINE_NONE', 'Paddock has no engine yet.')
    },
    setEngines,
    updateWeights: (order) => upstream.update(order),
    dropOldAdapters: () => upstream.dropOldAdapters(),
    followWeights: (weights) => upstream.follow(weights),
    engineWeights: () => upstream.weights(),
    scoreIds: (order) =>
      scoreIds(order, { engine: now, weights: () => upstream.weights(), paused: () => upstream.status().paused }),
    probe: (order) => probes.probe(order),
    textIds: async (text) => {
      const { textIds, name, url } = now()
      if (textIds !== undefined) return textIds(text)
      throw new PaddockError('ENGINE_INCAPABLE', `The engine ${name} at ${shownUrl(url)} tells no ids of a text.`, {
        fix: 'Give the ids themselves, or use vLLM or SGLang.',
      })
    },
    believeWeights: (live) => upstream.believe(live),
  }
  return {
    told,
    upstream,
    now,
    strategies: () => strategies,
    generations,
    probes,
    counting: new Counting(engine, limits, clock),
  }
}

export type OpenEngineSide = ReturnType<typeof openEngineSide>
