import { type Config, objectStoreKeys } from '../config/index.ts'
import { type Id, type Log, openLog, PaddockError, present, withoutSecrets } from '../core/index.ts'
import {
  chatRequestOf,
  createProxy,
  type EngineSide,
  type CallLine,
  type Listener,
  type Proxy,
  type ProxyEvent,
  type ProxyShard,
} from '../proxy/index.ts'
import {
  appendLate,
  defaultLimits,
  endInterrupted,
  Evals,
  Feeds,
  type FindSelector,
  type FindRoleEngine,
  type FoundRun,
  HandOuts,
  type LateVerdict,
  mayGoOn,
  NodeJobs,
  noNodes,
  NullLimits,
  OutsideGroups,
  OwnRuns,
  PolicyUpdates,
  Probes,
  Recordings,
  Rewrites,
  TrainerEngines,
  RoundScores,
  EngineOverUpdates,
  Shelving,
  TrainerGroups,
  type TrainerRun,
  TrainerRuns,
  runBudgets,
  type RunProgress,
  TurnEvents,
  Verifications,
  verifyByJobs,
  type VerifyElsewhere,
  VerifyJobs,
  verifyOrder,
} from '../rollout/index.ts'
import {
  ByteGate,
  WorkTally,
  type ControlServer,
  type NodeEngines,
  LiveFeed,
  type ResumeRequest,
  type RunRequest,
  sessionPolicy,
  startControl,
  type SubmittedRun,
} from '../server/index.ts'
import { controlToken } from '../access/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { announceOwner, objectsStoreOf, openStore, type Store } from '../trajectory/index.ts'
import { Closers } from './closers.ts'
import { type ResolvedEngine, scoringEngine } from './engine.ts'
import { EngineSet } from './engine-set.ts'
import type { FindEnvironment } from './environments.ts'
import { leadEngine, openPolicies, takeAdapters } from './policies.ts'
import { roleEngine } from './role-engine.ts'
import { LeftWork } from './left.ts'
import { logNodesAnswered, logProxyEvent } from './observe.ts'
import { rescoreByJobs } from './rescore-by-jobs.ts'
import { asPaddockError } from './present/failure.ts'
import { sandboxOf } from './sandbox.ts'
import { version } from './version.ts'
import { listenerTls, requireTls } from './tls.ts'
import { TokenTextCache } from './token-texts.ts'

/** A run that another process handed in. */
export interface SubmittedWork {
  readonly ended: Promise<unknown>
  cancel(): void
}

/** Begins a run of another process, or goes on with a recorded one. */
export type Submit = (owner: Owner, asked: RunRequest | ResumeRequest) => Promise<SubmittedRun>

/** Finds what a trainer's run is made of. */
export type FindRun = (owner: Owner, asked: TrainerRun) => Promise<FoundRun>

/** Everything that the one process which owns a data directory runs: store, engine, proxy, control API. */
export interface Owner {
  readonly store: Store
  /** Throws `ENGINE_NONE` where a trainer names it later. */
  readonly engine: ResolvedEngine
  readonly engines: Pick<EngineSet, 'found'>
  readonly proxy: Proxy
  /** What simulates the users of tasks; null: none is configured. */
  readonly userEngine: FindRoleEngine | null
  readonly listener: Listener
  readonly control: ControlServer
  readonly live: LiveFeed
  /** Tells live readers and the metrics how a run goes on. */
  progress(runId: Id, progress: RunProgress): void
  readonly log: Log
  /** Told of what happens to the engine, such as `paused` and `resumed`. */
  readonly engineListeners: Set<(what: string) => void>
  /** Pauses and weights, as whoever moves these asks for them. */
  readonly engineUpdates: EngineOverUpdates
  /** Shares of missing numbers at which its runs stop. */
  readonly nullLimits: NullLimits
  /** The agents of all its runs, for whoever puts them aside. */
  readonly shelving: Shelving
  /** The engine that judges are asked at, on the record; null: none is configured. */
  readonly judge: FindRoleEngine | null
  /** Nodes that do jobs of its runs. */
  readonly nodes: NodeJobs
  /** False: all rollouts are left to nodes. */
  readonly doesRollouts: boolean
  /** Verifies what was left; null: that is done here. */
  readonly elsewhere: VerifyElsewhere | null
  /** Submitted runs that are still going; they are awaited before anything closes. */
  readonly submitted: Map<Id, SubmittedWork>
  /** Runs that are going on in this process, by whomever they were begun. */
  readonly running: Set<Id>
  /** What agents of earlier processes left unverified. */
  readonly left: LeftWork
  /** Rejects with `CATALOGUE_REWOUND` when the catalogue lost what was committed: nothing can be gone on with then. */
  readonly rewound: Promise<never>
  /** Takes no more runs, and resolves when those that were submitted have ended. Idempotent. */
  settle(): Promise<void>
  /** Closes everything in order, the running calls committed. Idempotent. */
  close(): Promise<void>
}

export interface OwnerOptions {
  readonly config: Config
  /** Record clients that have no session of their own; loopback only. */
  readonly openMode: boolean
  readonly signal?: AbortSignal
  readonly onCall?: (call: CallLine) => void
  readonly onProxyEvent?: (event: ProxyEvent) => void
  /** Default true; false: all rollouts are left to nodes. */
  readonly doesRollouts?: boolean
  /** One process of several behind one listener, which this opens in the place of its own. Default: a listener of its own. */
  readonly shard?: { readonly place: ProxyShard; listen(proxy: Proxy): Promise<Listener> }
  /** Takes runs that other processes submit. */
  readonly submit: Submit
  /** Finds what a trainer's run is made of, whose rollouts are done here. */
  readonly findRun: FindRun
  /** Finds a selector of the configuration, or a built-in one. */
  readonly findSelector: FindSelector
  /** Finds an environment by its name, for what is verified here and was done elsewhere. */
  readonly findEnvironment: FindEnvironment
}

/** Opens the data directory, the engine and both listeners. On a failure everything opened so far is closed again. */
export async function openOwner(options: OwnerOptions): Promise<Owner> {
  const { config, signal } = options
  requireTls(config)
  const closers = new Closers()
  try {
    const log = await openLog({ ...config.log, secrets: secretsOf(config) })
    closers.add(async () => log.close())
    log.room('cli').debug({ config: withoutSecrets(config) }, 'configuration')
    const rewound = Promise.withResolvers<never>()
    // Whoever waits hears of it.
    rewound.promise.catch(() => undefined)
    const store = await openStore(config.store.directory, {
      synchronous: config.store.synchronous,
      catalogue: config.store.catalogue,
      onRewound: (error) => {
        log.room('cli').error({ error }, 'the catalogue was rewound')
        rewound.reject(error)
      },
      blobs: {
        ...config.blobs,
        store: objectsStoreOf(config.blobs),
        onChange: (why) =>
          why === null
            ? log.room('cli').info({}, 'the store of the blobs answers again')
            : log.room('cli').warn({ code: why.code, why: why.message }, 'blobs wait for their store'),
      },
      archive: {
        store: objectsStoreOf(config.archive),
        onChange: (why) =>
          why === null
            ? log.room('cli').info({}, 'the archive of finished sessions answers again')
            : log.room('cli').warn({ code: why.code, why: why.message }, 'finished sessions wait for their archive'),
      },
    })
    closers.add(() => store.close())
    const { unverified } = await endInterrupted(store)
    const hasPolicies = Object.keys(config.policies).length > 0
    if (hasPolicies && options.doesRollouts === false) {
      throw new PaddockError('CONFIG_INVALID', 'Nodes do rollouts of one policy, and `policies` names several.', {
        fix: 'Do the rollouts here: `paddock serve`, or `paddock coordinator --here`.',
      })
    }
    const engines = await EngineSet.open(leadEngine(config), {
      named: await store.trainer.engines(),
      onMissing: (url, error) => log.room('cli').warn({ url, error }, 'a replica that was named is not used'),
      dataDirectory: config.store.directory,
      ...(signal === undefined ? {} : { signal }),
    })
    closers.add(async () => engines[Symbol.asyncDispose]())
    const policies = await openPolicies(config, engines.found, {
      dataDirectory: config.store.directory,
      ...(signal === undefined ? {} : { signal }),
      onOpen: (engine) => closers.add(async () => engine[Symbol.asyncDispose]()),
    })
    const live = new LiveFeed()
    const texts = new TokenTextCache({ store, engine: () => proxy.engine, model: () => engines.found?.model ?? null })
    closers.add(() => texts.close())
    const tally = new WorkTally()
    const engineListeners: Owner['engineListeners'] = new Set()
    const shelving = new Shelving()
    const logCall = logProxyEvent(log.room('proxy'))
    const proxy = createProxy({
      recorder: store.recorder,
      blobs: store.blobs,
      engine: engines.found?.adapter ?? null,
      replicas: engines.found?.replicas ?? [],
      fleet: config.engine.fleet,
      ...(hasPolicies ? { policies } : {}),
      putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
      openMode: options.openMode,
      openPolicy: sessionPolicy(config.session, engines.found?.model ?? null),
      ...(options.shard === undefined ? {} : { shard: options.shard.place }),
      revives: (session) => mayGoOn(store, session),
      limits: {
        maxInFlight: config.proxy.maxInFlight,
        maxQueued: config.proxy.maxQueued,
        maxBodyBytes: config.proxy.maxBodyBytes,
        keepAliveMs: config.proxy.keepAliveMs,
        stallMs: config.proxy.stallMs,
        stallTaintMs: config.proxy.stallTaintMs,
      },
      onEvent: (event) => {
        options.onProxyEvent?.(event)
        tally.note(event)
        logCall(event)
        if (event.type === 'engine') {
          const { type: _type, ...happened } = event
          live.publish({ kind: 'engine', data: happened })
          for (const listener of engineListeners) listener(happened.what)
        }
        if (event.type !== 'call') return
        const { type: _type, ...call } = event
        options.onCall?.(call)
        turnEvents.note(call)
        live.publish({ kind: 'call', data: call })
        texts.noteCall(call.sessionId)
      },
    })
    closers.add(() => proxy.close())
    await takeAdapters(config, proxy)
    const judge = roleEngine('judge', config, { store, onEvent: logCall })
    closers.add(async () => judge[Symbol.asyncDispose]())
    const users = roleEngine('user', config, { store, onEvent: logCall })
    closers.add(async () => users[Symbol.asyncDispose]())
    const turnEvents = new TurnEvents({
      store,
      proxy,
      onTurn: (turn) => live.publish({ kind: 'turn', data: turn }),
      onFailure: (rolloutId, error) =>
        log.room('rollout').warn({ rolloutId, err: error }, 'a turn is not among the events of its run'),
    })
    const nullLimits = new NullLimits(store.catalogue)
    const outside = new OutsideGroups({ store, proxy, nullLimits })
    closers.add(async () => outside.close())
    const own = new OwnRuns({
      store,
      find: (asked) => options.findRun(owner, asked),
      onFailure: (runId, error) => {
        log.room('rollout').error({ runId, error }, 'a run of a trainer failed')
        live.publish({ kind: 'run', data: { runId, error: asPaddockError(error) } })
      },
    })
    closers.add(() => own.close())
    const groups = new TrainerGroups({ store, outside, own, nullLimits, requireEngine: () => proxy.requireEngine() })
    const nodes = new NodeJobs({
      store,
      leaseMs: config.nodes.leaseMs,
      onFailure: (error) => log.room('rollout').error({ error }, 'nodes that are silent could not be looked for'),
      onGivenBack: (node, why) => log.room('rollout').warn({ node, why }, 'a node gave a verification back'),
      onAnswered: logNodesAnswered(log.room('rollout')),
    })
    closers.add(async () => nodes.close())
    const overUpdates = (side: EngineSide): EngineOverUpdates =>
      new EngineOverUpdates({
        proxy: side,
        shelving,
        // Nodes do rollouts of one policy.
        nodes: hasPolicies ? noNodes : nodes.weights,
        onMissed: (rolloutId, why) =>
          log
            .room('rollout')
            .warn({ rolloutId, err: why }, 'an agent could not be shelved for an update of the weights'),
      })
    const engine = overUpdates(proxy)
    const others = new Map(policies.slice(1).map(({ name }) => [name, overUpdates(proxy.engineOf(name))]))
    const engineOf = (name: string | null): EngineOverUpdates => others.get(name ?? '') ?? engine
    const policy = new PolicyUpdates({ store, proxy, engineOf, groups })
    const evals = new Evals({
      store,
      groups,
      own,
      policy,
      onFailure: (runId, error) =>
        log.room('rollout').error({ runId, error }, 'an evaluation could not be gone on with'),
    })
    const named = new TrainerEngines({
      store,
      proxy,
      policy,
      look: (asked) => engines.look(asked),
      arrived: async () => {
        await own.resume()
        await evals.resume()
        await feeds.resume()
      },
    })
    const scorers = {
      reference: scoringEngine(config.engines.reference),
      teacher: scoringEngine(config.engines.teacher),
    }
    const scores = new RoundScores({
      scorers,
      policyTokenizer: async () => (await proxy.engine.fingerprint()).tokenizer,
      catalogue: store.catalogue,
    })
    const { findSelector } = options
    let verifierBoxes: Promise<SandboxProvider> | null = null
    closers.add(async () => (await verifierBoxes)?.close())
    const doesRollouts = options.doesRollouts ?? true
    const sandbox = (): Promise<SandboxProvider> => (verifierBoxes ??= sandboxOf(config))
    const verifyJobs = new VerifyJobs({
      store,
      here: doesRollouts
        ? ({ order, ...asked }, stop) => verifyOrder({ ...asked, sandbox, judge: judge.find, signal: stop }, order)
        : null,
      places: config.run.limits.verify ?? defaultLimits().verify,
      onFailure: (error) => log.room('rollout').error({ error }, 'nothing is verified here any more'),
      onReady: () => nodes.waiting.ring(),
    })
    const byJobs = verifyByJobs({ jobs: verifyJobs, store, budgets: runBudgets(present(config.run.budgets)) })
    const elsewhere = doesRollouts ? null : byJobs
    const verifications = new Verifications({
      store,
      own,
      environment: options.findEnvironment,
      jobs: verifyJobs,
      budgets: present(config.run.budgets),
      onFailure: (key, error) =>
        log.room('rollout').warn({ key, err: error }, 'what was brought could not be verified'),
    })
    closers.add(() => verifyJobs.close())
    closers.add(() => verifications.close())
    const rewrites = new Rewrites({
      store,
      readRequest: chatRequestOf,
      environment: (name) => options.findEnvironment(name, null),
      sandbox,
      judge: judge.find,
      ...(config.run.limits.verify === undefined ? {} : { parallel: config.run.limits.verify }),
    })
    const runs = new TrainerRuns({
      store,
      nullLimits,
      findSelector,
      groups,
      own,
      scores,
      engine: proxy.engine,
      hasEngine: () => proxy.hasEngine(),
      policies: proxy.policies,
    })
    const feeds = new Feeds({
      store,
      findSelector,
      runs,
      own,
      hasEngine: () => proxy.hasEngine(),
      onFailure: (runId, error) =>
        log.room('rollout').error({ runId, error }, 'a feed could not ask for its next group'),
    })
    closers.add(async () => feeds[Symbol.dispose]())
    await policy.resume()
    const { host, port } = config.proxy
    const listener = await (options.shard?.listen(proxy) ?? proxy.listen({ host, port }))
    const token = config.control.token ?? (await controlToken(config.store.directory))
    await outside.resume()
    const submitted = new Map<Id, SubmittedWork>()
    const recordings = new Recordings({ store, proxy })
    let stopping = false
    const submit = async (asked: Parameters<Submit>[1]): Promise<SubmittedRun> => {
      proxy.requireEngine()
      if (stopping) throw new PaddockError('OWNER_STOPPING', `process ${process.pid} takes no more runs`)
      return options.submit(owner, asked)
    }
    const settle = async (): Promise<void> => {
      stopping = true
      await Promise.allSettled([...submitted.values()].map((work) => work.ended))
    }
    const reading = {
      reader: store,
      inferenceOrigin: listener.origin,
      sessionDefaults: config.session,
      defaultModel: () => engines.found?.model ?? null,
      outside,
      appendLate: async (rolloutId: Id, given: LateVerdict) => {
        const verdict = await appendLate(store, rolloutId, given)
        await groups.judged(rolloutId)
        return verdict
      },
    }
    const control = await startControl(
      {
        ...reading,
        nodes: {
          jobs: nodes,
          verifications: verifyJobs,
          engines: () => enginesForNodes(engines.found),
          version,
          rewound: () => store.rewound,
          maxHandInBytes: config.nodes.maxHandInMb * 2 ** 20,
          handIns: new ByteGate(config.nodes.handInsMb * 2 ** 20),
        },
        rl: {
          ...reading,
          runs,
          handOuts: new HandOuts({
            store,
            scores,
            findSelector,
            nullLimits,
            spanReading: { readRequest: chatRequestOf, learnTexts: (sessionId) => texts.learn(sessionId) },
          }),
          policy,
          evals,
          groups,
          trainer: store.trainer,
          changes: store.changes,
          shelving,
          probes: new Probes({ store, proxy }),
          rewrites,
          verifications,
          scoreIds: async (role, of, order) => {
            if (role === 'policy') {
              if (of === null && policies.length > 1) {
                const known = policies.map(({ name }) => name)
                throw new PaddockError('POLICY_UNNAMED', `the engines of ${known.join(', ')} score ids`, {
                  data: { known },
                })
              }
              return proxy.engineOf(of).scoreIds(order)
            }
            const scorer = await scorers[role]?.()
            if (scorer !== undefined) return scorer.score(order)
            throw new PaddockError('ENGINE_INCAPABLE', `No engine is configured for the role ${role}.`, {
              fix: `Name it in \`engines.${role}.url\` of the configuration.`,
            })
          },
          engine: proxy.engine,
          hasEngine: () => proxy.hasEngine(),
          engines: named,
        },
        proxy,
        engine,
        tally,
        storeQueueDepth: () => store.load.requests,
        blobsState: store.blobsState,
        archiveState: () => store.archiver?.state() ?? null,
        cancelRun: (runId) => {
          const work = submitted.get(runId)
          if (work === undefined) throw new PaddockError('NOT_FOUND', `no run ${runId} is going here`)
          work.cancel()
        },
        rescore: (ids) =>
          rescoreByJobs(ids, {
            store,
            elsewhere: byJobs,
            findEnvironment: (name) => options.findEnvironment(name, null),
            onVerdict: (rolloutId) => groups.judged(rolloutId),
          }),
        submitRun: submit,
        resumeRun: submit,
        openRecording: (open) => recordings.open(open),
        closeSession: (id) => recordings.close(id),
      },
      { ...config.control, token, live, directory: config.store.directory, tls: await listenerTls(config) },
    )
    closers.add(() => control.close())
    nodes.weights.serve()
    closers.add(async () => nodes.weights.close())
    announceOwner(config.store.directory, control.localOrigin, {
      host: config.control.host,
      port: control.port,
      tls: config.tls.cert !== null,
    })
    closers.add(settle)
    const running = new Set<Id>()
    const left = new LeftWork(store, unverified)
    const owner: Owner = {
      store,
      get engine() {
        return engines.now
      },
      engines,
      proxy,
      userEngine: users.find,
      listener,
      control,
      live,
      progress: (runId, progress) => {
        tally.noteProgress(progress)
        turnEvents.progress(progress)
        live.publish({ kind: 'progress', data: { runId, progress } })
      },
      log,
      engineListeners,
      engineUpdates: engine,
      nullLimits,
      shelving,
      judge: judge.find,
      nodes,
      doesRollouts,
      elsewhere,
      submitted,
      running,
      left,
      rewound: rewound.promise,
      settle,
      close: () => closers.close(),
    }
    if (proxy.hasEngine()) {
      await own.resume()
      await evals.resume()
      await feeds.resume()
    }
    return owner
  } catch (error) {
    await closers.close()
    throw error
  }
}

/** The engine as nodes find it: one that is a process of ours is a server like others to them. */
function enginesForNodes(found: ResolvedEngine | null): NodeEngines | null {
  if (found === null) return null
  const { adapter, replicas, report, model } = found
  return { urls: [adapter, ...replicas].map(({ url }) => url), kind: report.kind, model }
}

/** What no log line may hold, whatever it looks like. */
function secretsOf({ engine, engines, policies, control }: Config): readonly string[] {
  const keys = objectStoreKeys()
  return [
    engine.apiKey,
    ...Object.values(engines).map((role) => role?.apiKey ?? null),
    ...Object.values(policies).map(({ apiKey }) => apiKey),
    control.token,
    keys?.secretAccessKey ?? null,
    keys?.sessionToken ?? null,
  ].filter((secret) => secret !== null)
}
