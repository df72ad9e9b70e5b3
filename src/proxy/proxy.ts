import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Digest, type Id, isLoopback, newId, PaddockError, systemClock } from '../core/index.ts'
import type { SessionRecord } from '../trajectory/index.ts'
import type { Listener, OpenedSession, OpenSession, Proxy, ProxyOptions, ProxyStats } from './contract.ts'
import { dialectNamed } from './dialects/registry.ts'
import { type OpenEngineSide, openEngineSide, type SideSurroundings } from './engine-side.ts'
import { defaultFleetLimits, type FleetStatus } from './fleet/contract.ts'
import { openListener } from './http/listener.ts'
import { dialectNameOf, readRoute, type Route } from './http/routes.ts'
import { defaultLimits } from './limits.ts'
import { EarlierSessions } from './past/earlier-sessions.ts'
import { takeUp } from './past/take-up.ts'
import { Admission } from './session/admission.ts'
import { keyDigest, keyOf, newKey } from './session/keys.ts'
import { LiveSession } from './session/live-session.ts'
import { OpenSessions } from './session/open-sessions.ts'
import { requireAble, wholePolicy } from './session/policy.ts'
import { SessionBook } from './session/session-book.ts'
import { newKeyOf } from './shards/keys.ts'
import { PassOn } from './shards/pass-on.ts'
import { Policies } from './policies.ts'
import { modelShape, serveModels } from './model-routes.ts'
import { serveStored } from './stored-responses.ts'
import { tellError } from './tell-error.ts'

/** How often keep-alives and stalls are looked for. */
const tickMs = 1000

/** The proxy over a recorder and an engine. It owns its listeners and connections until `close()`. */
export function createProxy(options: ProxyOptions): Proxy {
  const clock = options.clock ?? systemClock
  const limits = { ...defaultLimits, ...options.limits }
  const { recorder } = options
  const emit = options.onEvent ?? (() => {})
  const book = new SessionBook()
  const admission = new Admission(limits.maxInFlight, limits.maxQueued)
  const fleetLimits = { ...defaultFleetLimits, ...options.fleet }
  const listeners = new Set<Listener>()
  const { shard } = options
  const passOn = shard === undefined ? null : new PassOn(shard)
  let draining = false
  let closed: Promise<void> | null = null

  const around: SideSurroundings = {
    recorder,
    clock,
    fleetLimits,
    emit,
    blobs: options.blobs,
    putFingerprint: options.putFingerprint,
    rolloutOf: (sessionId) => book.rolloutOf(sessionId),
    keepAliveMs: limits.keepAliveMs,
    stallMs: limits.stallMs,
    stallTaintMs: limits.stallTaintMs,
    admission,
    limits,
    draining: () => draining,
  }
  const lead = openEngineSide({ engine: options.engine, replicas: options.replicas }, around)
  const policies = new Policies(options.policies ?? [], lead, (own) =>
    openEngineSide({ engine: own.adapter, replicas: own.replicas }, around),
  )
  const { sides } = policies
  const ticker = setInterval(
    () => {
      const now = clock.monotonic()
      for (const { upstream, generations } of sides) {
        upstream.tick(now)
        for (const call of generations.running) call.tick(now)
      }
    },
    Math.max(5, Math.min(tickMs, limits.keepAliveMs / 4, limits.stallMs / 4, fleetLimits.healthMs / 2)),
  )
  ticker.unref()

  const totalOf = (count: (side: OpenEngineSide) => number): number => sides.reduce((sum, one) => sum + count(one), 0)
  const upstreamOf = (id: Id): OpenEngineSide['upstream'] => policies.of(book.byIdOrThrow(id).record).upstream

  async function openSession(open: OpenSession): Promise<OpenedSession> {
    if (draining) throw new PaddockError('PROXY_DRAINING', 'The proxy opens no new sessions.')
    const policy = policies.belonging(wholePolicy(open.policy))
    const { told, upstream, strategies, generations } = policies.of({ policy })
    told.requireEngine()
    requireAble(policy, told.engine)
    const id = newId()
    // Until an engine answers calls carry no fingerprint.
    await upstream.knownFor(id)?.learn()
    const tokens = await strategies().of(id, policy)
    const key = shard === undefined ? newKey() : newKeyOf(shard)
    const record: SessionRecord = {
      id,
      rolloutId: open.rolloutId ?? null,
      role: open.role ?? 'agent',
      policy,
      keyDigest: keyDigest(key),
      forkedFrom: open.past === undefined ? null : { sessionId: open.past.log.session.id, callId: open.past.until },
      createdAt: clock.now(),
      labels: open.labels ?? {},
    }
    const { replayWindow } = limits
    const session = new LiveSession(record, { tokens, clock, replayWindow, past: open.past ?? null })
    await recorder.openSession(record)
    if (record.forkedFrom !== null) upstream.fork(id, record.forkedFrom.callId)
    book.add(session)
    if (open.past?.by === 'given') await generations.givePast(session)
    emit({ type: 'session', phase: 'opened', session: record })
    return { session: record, key, baseUrl: (origin) => `${origin.replace(/\/$/, '')}/s/${record.id}/v1` }
  }

  /** What an earlier process left is looked for where no session of this one is meant. */
  const past =
    options.revives === undefined
      ? null
      : new EarlierSessions({
          recorder,
          revives: options.revives,
          admit: async (log, open) => {
            const { id, policy, forkedFrom } = log.session
            const { upstream, strategies, generations } = policies.of(log.session)
            const tokens = await strategies().of(id, policy)
            const session = new LiveSession(log.session, { tokens, clock, replayWindow: limits.replayWindow })
            await takeUp(session, log, (call) => generations.deliveredPast(session, call.id))
            if (forkedFrom !== null) upstream.fork(id, forkedFrom.callId)
            session.open = open
            if (open) book.add(session)
            else book.retire(session)
            emit({ type: 'session', phase: open ? 'revived' : 'closed', session: log.session })
            return session
          },
        })

  const openSessions = new OpenSessions({
    open: (open) => openSession({ ...open, policy: options.openPolicy ?? {} }),
    recall: async (native) => (await past?.recallOpened(native)) ?? null,
    find: (id) => (book.isClosed(id) ? null : book.byIdOrThrow(id)),
  })

  /** Whose request it is; at once where nobody has to be asked. */
  function sessionOf(
    request: IncomingMessage,
    socket: LiveSession | null,
    sessionId: Id | null,
    key: string | null,
  ): LiveSession | Promise<LiveSession> {
    const digest = key === null ? null : keyDigest(key)
    if (socket !== null) return book.authoriseSocket(socket, sessionId, digest)
    if (past === null || key === null || digest === null || book.knowsKey(digest)) {
      return keyedSession(request, sessionId, digest)
    }
    // The session that this key opened for an earlier process is brought back, where there is one.
    return past.recall(key).then(() => keyedSession(request, sessionId, digest))
  }

  function keyedSession(
    request: IncomingMessage,
    sessionId: Id | null,
    key: Digest | null,
  ): LiveSession | Promise<LiveSession> {
    const open = options.openMode === true && sessionId === null
    return open && (key === null || book.byKeyOrNull(key) === null)
      ? openSessions.session(request.headers)
      : book.authorise(sessionId, key)
  }

  /** Throws and rejects with what is still to be told. */
  function serve(
    request: IncomingMessage,
    response: ServerResponse,
    socket: LiveSession | null,
    passed: boolean,
  ): Promise<void> {
    if (request.headers.upgrade !== undefined) {
      throw new PaddockError('STREAM_UPGRADE_REFUSED', `The upgrade to ${request.headers.upgrade} is not served.`)
    }
    lead.told.requireEngine()
    const key = keyOf(request.headers)
    if (passed && passOn !== null) {
      const other = passOn.shardOf(key)
      if (other !== null) return passOn.pass(request, response, other)
    }
    const { sessionId, route } = readRoute(request.method ?? 'GET', request.url ?? '/')
    const session = sessionOf(request, socket, sessionId, key)
    // What is awaited costs, also where it is there already: nearly always it is.
    return session instanceof Promise
      ? session.then((found) => serveRoute(found, route, request, response))
      : serveRoute(session, route, request, response)
  }

  function serveRoute(
    session: LiveSession,
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { upstream, now, counting, generations } = policies.of(session.record)
    if (route.kind === 'models') {
      const shape = modelShape(request.headers, route.path)
      const asked = { model: route.model, shape, hidesAdapters: upstream.adapter() !== null }
      return serveModels(session, asked, now(), response)
    }
    if (route.kind === 'stored') {
      return serveStored(session, route, response, (callId) => {
        const about = {
          id: newId(),
          at: clock.now(),
          rolloutId: session.record.rolloutId,
          sessionId: session.record.id,
        }
        return recorder.appendEvent({ ...about, kind: 'response_deleted', responseId: route.responseId, callId })
      })
    }
    const served = { dialect: dialectNamed(route.dialect), path: route.path }
    return route.kind === 'count'
      ? counting.serve(session, served, request, response)
      : generations.serve(session, served, request, response)
  }

  const handle =
    (socket: LiveSession | null) =>
    (request: IncomingMessage, response: ServerResponse, passed = false) => {
      const tell = (cause: unknown) => tellError(response, cause, dialectNamed(dialectNameOf(request.url ?? '/')))
      try {
        serve(request, response, socket, passed).catch(tell)
      } catch (cause) {
        tell(cause)
      }
    }

  async function closeSession(id: Id): Promise<void> {
    if (book.isClosed(id)) return
    // One that nobody came back to is known to the log alone.
    if (past !== null && !book.has(id)) return past.close(id, clock.now())
    const session = book.byIdOrThrow(id)
    if (!session.open) return
    session.open = false
    await Promise.all([...session.running].map((call) => call.abort('session')))
    await recorder.closeSession(id, clock.now())
    book.retire(session)
    policies.of(session.record).upstream.forget(id)
    emit({ type: 'session', phase: 'closed', session: session.record })
  }

  async function drain(): Promise<void> {
    draining = true
    await Promise.all(sides.map(({ generations }) => generations.idle()))
  }

  async function end(): Promise<void> {
    draining = true
    clearInterval(ticker)
    for (const { probes } of sides) probes.close()
    await Promise.all(
      sides.flatMap(({ generations }) => [...generations.running].map((call) => call.abort('shutdown'))),
    )
    await passOn?.close()
    await Promise.all([...listeners].map((listener) => listener.close()))
    for (const { upstream } of sides) {
      if (upstream.status().paused !== null) await upstream.resume()
      await upstream.close()
    }
  }

  return {
    ...lead.told,
    policies: policies.facts,
    engineOf: (policy) => policies.sideOf(policy).told,
    openSession,
    closeSession,
    closeOpenMode: async () => {
      for (const id of await openSessions.ids()) await closeSession(id)
    },
    sessionStats: (id) => book.stats(id),
    watchAnswers: (id, listener) => book.byIdOrThrow(id).watchAnswers(listener),
    holdRequests: (id, hold) => void (book.byIdOrThrow(id).hold = hold),
    sessionHandler: (id) => ({ request: handle(book.byIdOrThrow(id)) }),
    async listen({ host = '127.0.0.1', port = 0 }) {
      if (options.openMode === true && !isLoopback(host)) {
        throw new PaddockError('CONFIG_INVALID', `Open mode serves without keys and only on loopback, not on ${host}.`)
      }
      const listener = await openListener({ host, port, limits, handle: handle(null) })
      listeners.add(listener)
      return { ...listener, close: () => (listeners.delete(listener), listener.close()) }
    },
    stats: () => ({
      sessions: { open: book.size },
      inFlight: admission.inFlight,
      maxInFlight: limits.maxInFlight,
      queued: admission.queued,
      maxQueued: limits.maxQueued,
      calls: totalOf(({ generations }) => generations.totals.calls),
      sampledTokens: totalOf(({ generations }) => generations.totals.sampledTokens),
      promptTokens: totalOf(({ generations }) => generations.totals.promptTokens),
      upstream: connectionsOf(sides.flatMap(({ upstream }) => upstream.status().replicas)),
      draining,
    }),
    canShelve: (id) => upstreamOf(id).canHoldSession(id),
    shelveSession: (id) => {
      book.byIdOrThrow(id).shelve()
      return upstreamOf(id).holdSession(id)
    },
    resumeSession: (id) => {
      if (!book.has(id)) return
      book.byIdOrThrow(id).resume()
      upstreamOf(id).releaseSession(id)
    },
    drain,
    close: () => (closed ??= end()),
  }
}

/** Connections to all replicas together. */
function connectionsOf(replicas: FleetStatus['replicas']): ProxyStats['upstream'] {
  const connections = replicas.reduce((sum, replica) => sum + replica.connections, 0)
  const pending = replicas.reduce((sum, replica) => sum + replica.pending, 0)
  return { connections, free: Math.max(0, connections - replicas.reduce((sum, one) => sum + one.inFlight, 0)), pending }
}
