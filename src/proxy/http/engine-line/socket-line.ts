import { type Address, EngineConnection } from './connection.ts'
import type { EngineLine, LineAsk, LineExchange, LineSink } from './contract.ts'

const sweepMs = 1000

/**
 * An engine on plain HTTP/1.1, over sockets of our own: a request is one write, and what arrives in one read is handed on at
 * once. `docs/decisions/proxy.md` says what that saves, and what is refused.
 */
export class SocketLine implements EngineLine {
  private readonly address: Address
  private readonly root: string
  private readonly fixed: string
  private readonly open = new Set<EngineConnection>()
  /** The one used last is taken first: the others grow old and are closed. */
  private idle: { readonly connection: EngineConnection; readonly until: number }[] = []
  private readonly sweeper: NodeJS.Timeout
  private readonly lost: () => void

  /** `base`: an `http:` URL. `headers` are the same for all requests. Throws `TypeError` where one would break the head. */
  constructor(base: URL, headers: Readonly<Record<string, string>>, lost: () => void = () => {}) {
    this.lost = lost
    const host = base.hostname.startsWith('[') ? base.hostname.slice(1, -1) : base.hostname
    this.address = { host, port: base.port === '' ? 80 : Number(base.port) }
    this.root = base.pathname.replace(/\/$/, '')
    this.fixed = ` HTTP/1.1\r\nhost: ${base.host}\r\ncontent-type: application/json\r\naccept-encoding: identity\r\n${linesOf(headers)}`
    this.sweeper = setInterval(() => this.sweep(), sweepMs)
    this.sweeper.unref()
  }

  ask({ path, headers, body }: LineAsk, sink: LineSink, fresh: boolean): LineExchange {
    const connection = (fresh ? null : this.takeIdle()) ?? this.connect()
    const head = `POST ${this.root}${path}${this.fixed}${linesOf(headers)}content-length: ${body.length}\r\n\r\n`
    return connection.carry(head, body, sink)
  }

  stats(): { readonly connections: number; readonly pending: number } {
    return { connections: this.open.size, pending: 0 }
  }

  close(): Promise<void> {
    clearInterval(this.sweeper)
    for (const connection of this.open) connection.destroy()
    return Promise.resolve()
  }

  private connect(): EngineConnection {
    const connection = new EngineConnection(this.address, {
      free: (freed, keepMs) => this.idle.push({ connection: freed, until: performance.now() + keepMs }),
      closed: (closed) => {
        this.open.delete(closed)
        const waited = this.idle.some((one) => one.connection === closed)
        this.idle = this.idle.filter((one) => one.connection !== closed)
        if (waited && !closed.dropped) this.lost()
      },
    })
    this.open.add(connection)
    return connection
  }

  private takeIdle(): EngineConnection | null {
    const now = performance.now()
    for (let last = this.idle.pop(); last !== undefined; last = this.idle.pop()) {
      if (last.until > now) return last.connection
      last.connection.destroy()
    }
    return null
  }

  private sweep(): void {
    const now = performance.now()
    for (const { connection, until } of this.idle) if (until <= now) connection.destroy()
  }
}

/** Header lines. What would end a line, or is not latin1, is no value. */
function linesOf(headers: Readonly<Record<string, string>>): string {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      throw new TypeError(`The header ${name} has a value that cannot be sent.`)
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
