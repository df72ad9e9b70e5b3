/** A node's side of the routes of nodes. */
import { createWriteStream } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { z } from 'zod'
import {
  catalogue,
  type Digest,
  type ErrorCode,
  type Id,
  isPaddockError,
  PaddockError,
  sha256,
} from '../../core/index.ts'
import type { NodeJob, NodeSaid, NodeVerification, ToldWeights, Verified } from '../../rollout/index.ts'
import {
  beatAnswer,
  claimAnswer,
  claimVerificationsAnswer,
  digestHeader,
  filesAnswer,
  giveBackAnswer,
  handInAnswer,
  type NodeEngines,
  nodeProtocol,
  openAnswer,
  weightsAnswer,
} from '../../server/index.ts'
import type { FilesThere } from './task-copy.ts'

export interface NodeClientParts {
  /** Of the coordinator's control listener. */
  readonly origin: string
  readonly token: string
  /** Nothing is asked any more. */
  readonly signal: AbortSignal
  /** Told once for each time that the coordinator cannot be reached. */
  readonly onUnreachable: (why: string) => void
}

export interface Joined {
  readonly session: Id
  readonly leaseMs: number
  readonly engines: NodeEngines | null
  /** What holds for the engine. */
  readonly weights: ToldWeights
  /** How often its catalogue lost something. */
  readonly rewound: number
}

type Lease = NodeJob['lease']

/** Between two tries of a request that no answer came to. */
const retryMs = 1000
/** Until a request is given up and asked again; a rollout may be large. */
const answerMs = 60_000
const handInMs = 600_000
/** So long the coordinator keeps the question what it tells next. */
const weightsMs = 20_000
/** So long it keeps the question what there is to do. */
const claimMs = 30_000

/** Every request may be repeated, and is until it is answered. Throws the coordinator's refusals under their codes. */
export class NodeClient {
  readonly #parts: NodeClientParts

  constructor(parts: NodeClientParts) {
    this.#parts = parts
  }

  /** Throws `NODE_VERSION`, `CONTROL_TOKEN`, `ROLE_REFUSED`. */
  async open(node: {
    readonly name: string
    readonly labels: readonly string[]
    readonly paddock: string
  }): Promise<Joined> {
    const told = await this.#json(openAnswer, 'POST', '/nodes/sessions', { protocol: nodeProtocol, ...node })
    const { session_id: session, lease_ms: leaseMs, engines, weights, rewound } = told
    return { session, leaseMs, engines, weights, rewound }
  }

  /** Says what was done of what was told of the engine, and waits for what is told next. */
  async weights(session: Id, { mark, failed }: NodeSaid, also: readonly Id[]): Promise<ToldWeights> {
    const body = { mark, failed, also: also.slice(-1000), wait_ms: weightsMs }
    return (await this.#json(weightsAnswer, 'POST', `/nodes/sessions/${session}/weights`, body)).weights
  }

  async beat(session: Id, held: readonly Lease[]) {
    const jobs = held.map(({ jobId, token }) => ({ job_id: jobId, token }))
    return this.#json(beatAnswer, 'POST', `/nodes/sessions/${session}/beat`, { jobs })
  }

  /** What there is to do, or nothing after a while. Throws `NODE_SESSION_GONE`, and the reason of `signal`, which ends the question. */
  async claim(
    session: Id,
    asked: {
      readonly requestId: Id
      readonly limit: number
      readonly capacity: Readonly<Record<string, number>>
      readonly without: readonly Id[]
      readonly mark: string
      readonly rewound: number
    },
    { signal, waitMs = claimMs }: { readonly signal: AbortSignal; readonly waitMs?: number },
  ): Promise<readonly NodeJob[]> {
    const { requestId, ...rest } = asked
    const body = { request_id: requestId, wait_ms: waitMs, ...rest }
    return (await this.#json(claimAnswer, 'POST', `/nodes/sessions/${session}/claims`, body, signal)).jobs
  }

  /** The files of a run's tasks. */
  filesOfRun(session: Id, runId: Id): FilesThere {
    return this.#filesAt(`/nodes/sessions/${session}/runs/${runId}/files`, '')
  }

  /** As {@link NodeClient.claim}. */
  async claimVerifications(
    session: Id,
    { requestId, ...rest }: { readonly requestId: Id; readonly limit: number; readonly without: readonly string[] },
    signal: AbortSignal,
  ): Promise<readonly NodeVerification[]> {
    const path = `/nodes/sessions/${session}/verifications`
    const body = { request_id: requestId, wait_ms: claimMs, ...rest }
    return (await this.#json(claimVerificationsAnswer, 'POST', path, body, signal)).jobs
  }

  /** The files that a verification needs. */
  filesOfVerification({ session, jobId, token }: Lease): FilesThere {
    return this.#filesAt(`/nodes/sessions/${session}/verifications/${jobId}/files`, `?token=${token}`)
  }

  /** Something of the work of a verification. Throws `HANDIN_DAMAGED` for other bytes. */
  async artifact({ session, jobId, token }: Lease, digest: Digest): Promise<Uint8Array> {
    const path = `/nodes/sessions/${session}/verifications/${jobId}/artifacts/${digest}?token=${token}`
    const bytes = await this.#answered(path, async (url, headers, signal) => {
      const answer = await fetch(url, { headers, signal })
      if (!answer.ok) throw await refusal(answer)
      return new Uint8Array(await answer.arrayBuffer())
    })
    if (sha256(bytes) === digest) return bytes
    throw new PaddockError('HANDIN_DAMAGED', `the artifact ${digest} does not have its digest`)
  }

  /** The record of a rollout that a job goes on from. Throws `NOT_FOUND`. */
  async parent(
    { session, jobId, token }: Lease,
    rolloutId: Id,
  ): Promise<{ readonly bytes: Uint8Array; readonly digest: Digest }> {
    const path = `/nodes/sessions/${session}/jobs/${jobId}/parents/${rolloutId}?token=${token}`
    const ask = async (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => {
      const answer = await fetch(url, { headers, signal })
      if (!answer.ok) throw await refusal(answer)
      return { bytes: new Uint8Array(await answer.arrayBuffer()), digest: answer.headers.get(digestHeader) ?? '' }
    }
    return this.#answered(path, ask, { limitMs: handInMs })
  }

  /** Throws `HANDIN_REFUSED`. */
  async handInVerdict({ session, jobId, token }: Lease, came: Verified): Promise<z.output<typeof handInAnswer>> {
    const path = `/nodes/sessions/${session}/verifications/${jobId}/hand-in?token=${token}`
    return this.#json(handInAnswer, 'POST', path, { came })
  }

  /** Throws `HANDIN_*`, `STORE_CONFLICT`. */
  async handIn(
    { jobId, session, token }: Lease,
    { bytes, digest, fault }: { readonly bytes: Buffer; readonly digest: Digest; readonly fault: string | null },
  ): Promise<z.output<typeof handInAnswer>> {
    const query = new URLSearchParams({ token: String(token), digest, ...(fault === null ? {} : { fault }) })
    const path = `/nodes/sessions/${session}/jobs/${jobId}/hand-in?${query.toString()}`
    return this.#answered(
      path,
      async (url, headers, signal) => {
        const type = { 'content-type': 'application/octet-stream' }
        const answer = await fetch(url, {
          method: 'POST',
          headers: { ...headers, ...type },
          body: new Uint8Array(bytes),
          signal,
        })
        if (!answer.ok) throw await refusal(answer)
        return handInAnswer.parse(await answer.json())
      },
      { limitMs: handInMs },
    )
  }

  async giveBack({ jobId, session, token }: Lease, why: 'drain' | 'failure', reason: string | null): Promise<boolean> {
    const body = { token, why, reason: reason === null ? null : reason.slice(0, 2000) }
    const path = `/nodes/sessions/${session}/jobs/${jobId}/give-back`
    return (await this.#json(giveBackAnswer, 'POST', path, body)).given_back
  }

  async drain(session: Id): Promise<void> {
    await this.#empty('POST', `/nodes/sessions/${session}/drain`)
  }

  async end(session: Id): Promise<void> {
    await this.#empty('DELETE', `/nodes/sessions/${session}`)
  }

  #filesAt(path: string, query: string): FilesThere {
    return {
      list: () => this.#json(filesAnswer, 'GET', `${path}${query}`),
      file: (digest, to) =>
        this.#answered(`${path}/${digest}${query}`, async (url, headers, signal) => {
          const answer = await fetch(url, { headers, signal })
          if (!answer.ok || answer.body === null) throw await refusal(answer)
          // Of the same platform, under two names of types.
          await pipeline(Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]), createWriteStream(to))
        }),
    }
  }

  async #empty(method: string, path: string): Promise<void> {
    await this.#answered(path, async (url, headers, signal) => {
      const answer = await fetch(url, { method, headers, signal })
      if (!answer.ok) throw await refusal(answer)
      await answer.arrayBuffer()
    })
  }

  async #json<Answer extends z.ZodType>(
    schema: Answer,
    method: string,
    path: string,
    body?: unknown,
    until?: AbortSignal,
  ): Promise<z.output<Answer>> {
    const ask = async (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const sent = {
        method,
        headers: { ...headers, ...type },
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }
      const answer = await fetch(url, sent)
      if (!answer.ok) throw await refusal(answer)
      return schema.parse(await answer.json())
    }
    return this.#answered(path, ask, { until })
  }

  /** Again and again, until an answer comes that is one, or a signal aborts. */
  async #answered<T>(
    path: string,
    ask: (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<T>,
    { limitMs = answerMs, until }: { readonly limitMs?: number; readonly until?: AbortSignal | undefined } = {},
  ): Promise<T> {
    const { origin, token, onUnreachable } = this.#parts
    const signal = until === undefined ? this.#parts.signal : AbortSignal.any([this.#parts.signal, until])
    for (let told = false; ; told = true) {
      signal.throwIfAborted()
      try {
        return await ask(
          `${origin}${path}`,
          { authorization: `Bearer ${token}` },
          AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
        )
      } catch (error) {
        signal.throwIfAborted()
        // What the coordinator refuses is an answer; what went wrong in it may go right another time.
        if (isPaddockError(error) && (error.family !== 'infra' || error.code === 'INTERNAL')) throw error
        if (isUntrusted(error))
          throw new PaddockError('TLS_UNTRUSTED', `${origin}: ${causeOf(error)}`, { cause: error })
        if (!told) onUnreachable(causeOf(error))
        await setTimeout(retryMs, undefined, { signal })
      }
    }
  }
}

function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error
}

function causeOf(error: unknown): string {
  const cause = innermost(error)
  return cause instanceof Error ? cause.message : String(cause)
}

/** Codes of X.509 faults: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
function isUntrusted(error: unknown): boolean {
  const cause = innermost(error)
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return /CERT|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/.test(code)
}

async function refusal(answer: Response): Promise<PaddockError> {
  const said: unknown = await answer.json().catch(() => null)
  const error =
    typeof said === 'object' && said !== null && 'error' in said ? (said.error as Record<string, unknown>) : {}
  const { code, message, fix } = error
  const known: ErrorCode =
    typeof code === 'string' && code in catalogue
      ? (code as ErrorCode)
      : answer.status >= 500
        ? 'OWNER_STOPPING'
        : 'INTERNAL'
  const text = typeof message === 'string' ? message : `status ${answer.status}`
  return new PaddockError(known, `the coordinator refuses: ${text}`, typeof fix === 'string' ? { fix } : {})
}
