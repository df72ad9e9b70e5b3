import { type Config, type Id, PaddockError } from '../core/index.ts'
import { createProxy, type CallLine, type Listener, type Proxy, type ProxyEvent } from '../proxy/index.ts'
import { endInterrupted } from '../rollout/index.ts'
import {
  type ControlServer,
  controlToken,
  LiveFeed,
  type RunRequest,
  sessionPolicy,
  startControl,
  type SubmittedRun,
} from '../server/index.ts'
import { announceOwner, openStore, type Store } from '../trajectory/index.ts'
import { Closers } from './closers.ts'
import { type ResolvedEngine, resolveEngine } from './engine.ts'
import { TokenTextCache } from './token-texts.ts'

/** A run that another process handed in. */
export interface SubmittedWork {
  readonly ended: Promise<unknown>
  cancel(): void
}

/** Everything that the one process which owns a data directory runs: store, engine, proxy, control API. */
export interface Owner {
  readonly store: Store
  readonly engine: ResolvedEngine
  readonly proxy: Proxy
  readonly listener: Listener
  readonly control: ControlServer
  readonly live: LiveFeed
  /** Submitted runs that are still going; they are awaited before anything closes. */
  readonly submitted: Map<Id, SubmittedWork>
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
  /** Takes runs that other processes submit. */
  readonly submitRun?: (owner: Owner, request: RunRequest) => Promise<SubmittedRun>
}

/** Opens the data directory, the engine and both listeners. On a failure everything opened so far is closed again. */
export async function openOwner(options: OwnerOptions): Promise<Owner> {
  const { config, signal } = options
  const closers = new Closers()
  try {
    const store = await openStore(config.store.directory, { synchronous: config.store.synchronous })
    closers.add(() => store.close())
    await endInterrupted(store)
    const engine = await resolveEngine(config.engine, {
      dataDirectory: config.store.directory,
      ...(signal === undefined ? {} : { signal }),
    })
    closers.add(async () => engine[Symbol.asyncDispose]())
    const live = new LiveFeed()
    const texts = new TokenTextCache({ store, engine: engine.adapter, model: engine.model })
    closers.add(() => texts.close())
    const proxy = createProxy({
      recorder: store.recorder,
      engine: engine.adapter,
      putFingerprint: (fingerprint) => store.catalogue.putFingerprint(fingerprint),
      openMode: options.openMode,
      openPolicy: sessionPolicy(config.session, engine.model),
      limits: {
        maxInFlight: config.proxy.maxInFlight,
        maxQueued: config.proxy.maxQueued,
        maxBodyBytes: config.proxy.maxBodyBytes,
        keepAliveMs: config.proxy.keepAliveMs,
        stallMs: config.proxy.stallMs,
      },
      onEvent: (event) => {
        options.onProxyEvent?.(event)
        if (event.type !== 'call') return
        const { type: _type, ...call } = event
        options.onCall?.(call)
        live.publish({ kind: 'call', data: call })
        texts.noteCall(call.sessionId)
      },
    })
    closers.add(() => proxy.close())
    const listener = await proxy.listen({ host: config.proxy.host, port: config.proxy.port })
    const token = config.control.token ?? (await controlToken(config.store.directory))
    const submit = options.submitRun
    const submitted = new Map<Id, SubmittedWork>()
    const control = await startControl(
      {
        reader: store,
        proxy,
        inferenceOrigin: listener.origin,
        sessionDefaults: config.session,
        defaultModel: engine.model,
        storeQueueDepth: () => store.load.requests,
        cancelRun: (runId) => {
          const work = submitted.get(runId)
          if (work === undefined) throw new PaddockError('NOT_FOUND', `no run ${runId} is going here`)
          work.cancel()
        },
        submitRun: submit === undefined ? null : (request) => submit(owner, request),
      },
      { ...config.control, token, live },
    )
    closers.add(() => control.close())
    announceOwner(config.store.directory, control.origin)
    closers.add(() => Promise.allSettled([...submitted.values()].map((work) => work.ended)))
    const owner: Owner = { store, engine, proxy, listener, control, live, submitted, close: () => closers.close() }
    return owner
  } catch (error) {
    await closers.close()
    throw error
  }
}
