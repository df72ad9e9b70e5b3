import { StringDecoder } from 'node:string_decoder'
import type { Clock } from '../../core/index.ts'
import type { TerminalSize } from './frames.ts'

/** Keeps what a terminal showed and when, as asciicast v2: a header line, then `[seconds, "o" or "r", data]` lines. */
export class Asciicast {
  readonly #clock: Clock
  readonly #startedMs: number
  readonly #maxBytes: number
  // A character may be cut between two pieces of output.
  readonly #decoder = new StringDecoder('utf8')
  readonly #lines: string[]
  #bytes = 0

  constructor(o: TerminalSize & { readonly clock: Clock; readonly maxBytes: number }) {
    this.#clock = o.clock
    this.#startedMs = o.clock.monotonic()
    this.#maxBytes = o.maxBytes
    const timestamp = Math.floor(o.clock.now() / 1000)
    this.#lines = [JSON.stringify({ version: 2, width: o.columns, height: o.rows, timestamp })]
  }

  output(bytes: Uint8Array): void {
    this.#add('o', this.#decoder.write(Buffer.from(bytes)))
  }

  resized(size: TerminalSize): void {
    this.#add('r', `${size.columns}x${size.rows}`)
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`
  }

  #add(kind: 'o' | 'r', data: string): void {
    if (data === '') return
    const seconds = Math.round(this.#clock.monotonic() - this.#startedMs) / 1000
    const line = JSON.stringify([seconds, kind, data])
    if (this.#bytes + line.length > this.#maxBytes) return
    this.#bytes += line.length
    this.#lines.push(line)
  }
}
