import { lookup } from 'node:dns/promises'
import { type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { serveNames } from './name-stream.ts'
import { NameBook, nameServer } from './names.ts'
import {
  decideEgress,
  type EgressDecision,
  type EgressPolicy,
  parseEgress,
  refusedBeforeLookup,
  refusedName,
} from './policy.ts'

const connectMs = 10_000
const namePort = 53

/** One try to reach something. */
export interface EgressAttempt {
  readonly host: string
  readonly port: number
  readonly allowed: boolean
  /** The rule that allowed it, or why it was refused. */
  readonly rule: string
}

export interface EgressGateOptions {
  /** Default `none`. */
  readonly policy?: EgressPolicy
  readonly onAttempt: (attempt: EgressAttempt) => void
  /** Addresses of a name. Default: the host's own resolver. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
}

/**
 * The way out of a box: an HTTP proxy (CONNECT, and plain requests in absolute form, RFC 9112 §3.2.2) behind its socket
 * socket. Names are resolved here, once, and the connection goes to the very address that was judged. Where the box's relay
 * catches every connection, it asks in the same way; what programs look up before they connect is answered here too.
 */
export interface EgressGate {
  readonly policy: EgressPolicy
  /** Holds from now on; what the new policy does not allow is cut at once. */
  set(policy: EgressPolicy): void
  connect(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** For requests of which {@link isProxyRequest} is true. */
  request(request: IncomingMessage, response: ServerResponse): void
  /** Cuts everything and refuses from now on. */
  close(): void
}

/** Whether a request asks to be passed on to another server. */
export function isProxyRequest(request: IncomingMessage): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(request.url ?? '')
}

/** Throws `CONFIG_INVALID` for a policy that means nothing. */
export function egressGate(options: EgressGateOptions): EgressGate {
  return new Gate(options)
}

interface Passage {
  readonly host: string
  readonly port: number
  readonly address: string
  cut(): void
}

class Gate implements EgressGate {
  readonly #onAttempt: EgressGateOptions['onAttempt']
  readonly #resolve: NonNullable<EgressGateOptions['resolve']>
  readonly #passages = new Set<Passage>()
  readonly #names: NameBook
  #egress: ReturnType<typeof parseEgress>

  constructor(o: EgressGateOptions) {
    this.#onAttempt = o.onAttempt
    this.#resolve = o.resolve ?? systemAddresses
    this.#egress = parseEgress(o.policy ?? 'none')
    this.#names = new NameBook({
      refused: (host) => refusedName(this.#egress, host),
      resolve: this.#resolve,
      onRefused: (host, rule) => this.#onAttempt({ host: host.slice(0, 255), port: namePort, allowed: false, rule }),
    })
  }

  get policy(): EgressPolicy {
    return this.#egress.policy
  }

  set(policy: EgressPolicy): void {
    this.#egress = parseEgress(policy)
    for (const passage of this.#passages) {
      if (!decideEgress(this.#egress, passage.host, passage.port, [passage.address]).allowed) passage.cut()
    }
  }

  close(): void {
    this.set('none')
  }

  connect(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const target = this.#named(authority(request.url ?? ''))
    if (target.host === nameServer && target.port === namePort) {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      return serveNames(this.#names, socket, head)
    }
    void this.#judge(target.host, target.port).then((decision) => {
      if (socket.destroyed) return
      if (!decision.allowed) return refuseTunnel(socket, 403, decision.rule)
      const upstream = this.#open(target, decision.address, () => socket.destroy())
      let open = false
      upstream.once('connect', () => {
        open = true
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        if (head.length > 0) upstream.write(head)
        upstream.pipe(socket).pipe(upstream)
      })
      upstream.once('close', () => {
        if (!open) return refuseTunnel(socket, 502, 'no connection')
        // What it said last may still be on its way to a box that reads slowly.
        if (upstream.readableEnded) socket.end(() => socket.destroy())
        else socket.destroy()
      })
      socket.once('close', () => upstream.destroy())
    })
  }

  request(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : null
    if (url === null || url.protocol !== 'http:') {
      request.resume()
      return refuse(response, 400, 'only http: is passed on in this form')
    }
    const target = this.#named(authority(`${url.hostname}:${url.port === '' ? 80 : url.port}`))
    void this.#judge(target.host, target.port).then((decision) => {
      if (response.destroyed) return
      if (!decision.allowed) {
        request.resume()
        return refuse(response, 403, decision.rule)
      }
      const { address } = decision
      const upstream = httpRequest({
        createConnection: () => this.#open(target, address, () => response.destroy()),
        method: request.method,
        path: `${url.pathname}${url.search}`,
        headers: { ...withoutHopByHop(request.headers), host: url.host, connection: 'close' },
        setHost: false,
      })
      upstream.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, withoutHopByHop(answer.headers))
        answer.once('error', () => response.destroy()).pipe(response)
      })
      upstream.once('error', () => (response.headersSent ? response.destroy() : refuse(response, 502, 'no connection')))
      response.once('close', () => upstream.destroy())
      request.once('error', () => upstream.destroy()).pipe(upstream)
    })
  }

  /** An address that stands for a name is that name. */
  #named<T extends { readonly host: string }>(target: T): T {
    const name = this.#names.nameOf(target.host)
    return name === null ? target : { ...target, host: name }
  }

  /** Judges and tells. Fails closed: whatever goes wrong is a refusal. */
  async #judge(host: string, port: number): Promise<EgressDecision> {
    let decision: EgressDecision
    try {
      const early = refusedBeforeLookup(this.#egress, host, port)
      const addresses = early !== null ? [] : isIP(host) === 0 ? await this.#resolve(host) : [host]
      // Judged after the lookup, by the policy that holds then.
      decision = early === null ? decideEgress(this.#egress, host, port, addresses) : { allowed: false, rule: early }
    } catch {
      decision = { allowed: false, rule: 'unresolvable' }
    }
    this.#onAttempt({ host: host.slice(0, 255), port, allowed: decision.allowed, rule: decision.rule })
    return decision
  }

  #open(target: { readonly host: string; readonly port: number }, address: string, cut: () => void): Socket {
    const socket = connect({ host: address, port: target.port, noDelay: true })
    const timer = setTimeout(() => socket.destroy(new Error('no answer in time')), connectMs)
    const passage: Passage = {
      ...target,
      address,
      cut: () => {
        socket.destroy()
        cut()
      },
    }
    this.#passages.add(passage)
    socket.once('connect', () => clearTimeout(timer))
    socket.on('error', () => undefined)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#passages.delete(passage)
    })
    return socket
  }
}

/** RFC 9110 §9.3.6: the target of CONNECT is host:port; an IPv6 host stands in brackets. */
function authority(target: string): { readonly host: string; readonly port: number } {
  const colon = target.lastIndexOf(':')
  const host = (colon < 0 ? target : target.slice(0, colon))
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  const port = Number(target.slice(colon + 1))
  return { host, port: colon >= 0 && Number.isInteger(port) ? port : 0 }
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Fields that concern one connection only (RFC 9110 §7.6.1), and those that speak to a proxy. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function withoutHopByHop(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)))
}

function refuse(response: ServerResponse, status: number, rule: string): void {
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' })
  response.end(`paddock: this box may not reach that (${rule})\n`)
}

function refuseTunnel(socket: Duplex, status: 403 | 502, rule: string): void {
  const body = `paddock: this box may not reach that (${rule})\n`
  const reason = status === 403 ? 'Forbidden' : 'Bad Gateway'
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}`
  if (!socket.destroyed) socket.end(`${head}\r\nconnection: close\r\n\r\n${body}`)
}
