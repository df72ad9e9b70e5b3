import { decode, encode, type Packet } from 'dns-packet'
import { isIP } from 'node:net'

/** Where a box with egress sends its name queries; the relay knows it as `NAMES`. */
export const nameServer = '198.18.0.1'

/**
 * Addresses that stand for names inside a box: 198.18.0.0/15, set aside for benchmarks of networks (RFC 2544, RFC 6890), so
 * that nothing real is hidden by them.
 */
const first = (198 << 24) | (18 << 16) | 2
const most = 2 ** 17 - 3
/** Short, because a policy can change; the stand-in itself stays. */
const ttlSeconds = 5

export interface NameBookOptions {
  /** Null where the name may be looked up, else why not. */
  readonly refused: (host: string) => string | null
  readonly resolve: (host: string) => Promise<readonly string[]>
  readonly onRefused: (host: string, rule: string) => void
}

/**
 * The resolver of a box. A name that its policy knows and that exists is answered with an address that stands for the
 * name, the same one each time: what then connects to it is judged, and resolved, by that name. Other names are answered
 * as not existing and are never looked up, so that a query carries nothing out. There are no IPv6 answers.
 */
export class NameBook {
  readonly #o: NameBookOptions
  readonly #names = new Map<string, string>()
  readonly #addresses = new Map<string, string>()

  constructor(options: NameBookOptions) {
    this.#o = options
  }

  /** The name that an address stands for, or null. */
  nameOf(address: string): string | null {
    return this.#names.get(address) ?? null
  }

  /** The answer to one query; null for what is no query. */
  async answer(message: Buffer): Promise<Buffer | null> {
    const asked = parse(message)
    const question = asked?.questions?.[0]
    if (asked === null || question === undefined) return null
    const host = question.name.toLowerCase()
    const { code, address } = await this.#lookUp(host, question.type)
    // dns-packet keeps the response code in the low bits of the flags.
    const flags = recursionDesired | recursionAvailable | code
    const { name } = question
    const answers = address === null ? [] : [{ type: 'A' as const, name, ttl: ttlSeconds, data: address }]
    return encode({ type: 'response', id: asked.id ?? 0, flags, questions: [question], answers })
  }

  async #lookUp(host: string, type: string): Promise<{ readonly code: number; readonly address: string | null }> {
    const rule = isIP(host) === 0 ? this.#o.refused(host) : 'malformed'
    if (rule !== null) {
      // Resolvers ask for both families at once; that is one attempt.
      if (type !== 'AAAA') this.#o.onRefused(host, rule)
      return { code: noSuchName, address: null }
    }
    if (type !== 'A') return { code: 0, address: null }
    const found = await this.#o.resolve(host).catch(() => [])
    if (found.length === 0) return { code: noSuchName, address: null }
    const address = this.#addressOf(host)
    return address === null ? { code: serverFailure, address } : { code: 0, address }
  }

  #addressOf(host: string): string | null {
    const known = this.#addresses.get(host)
    if (known !== undefined) return known
    if (this.#addresses.size >= most) return null
    const number = first + this.#addresses.size
    const address = [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.')
    this.#addresses.set(host, address)
    this.#names.set(address, host)
    return address
  }
}

/** RFC 1035 §4.1.1. */
const recursionDesired = 1 << 8
const recursionAvailable = 1 << 7
const serverFailure = 2
const noSuchName = 3

function parse(message: Buffer): Packet | null {
  try {
    const packet = decode(message)
    return packet.type === 'query' ? packet : null
  } catch {
    return null
  }
}
