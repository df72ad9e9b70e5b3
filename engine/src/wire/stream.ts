import type { CallFaults } from '../faults/fault-switch.ts'
import type { Exchange } from '../http/exchange.ts'

/** Where in a stream the next event stands; decides whether an ordered death strikes before it. */
export type EventPlace = 'token' | 'finish' | 'usage' | 'done'

/** Writes server-sent events and dies where it was told to. */
export class EventStream {
  readonly #exchange: Exchange
  readonly #faults: CallFaults
  #opened = false
  #dead = false

  constructor(exchange: Exchange, faults: CallFaults) {
    this.#exchange = exchange
    this.#faults = faults
    // Servers answer with headers at once; an ordered stall keeps even those back.
    const stall = faults.find('stall')
    if (stall?.at !== 'before_first_byte') this.#open()
  }

  /** True once the connection was cut or the client has left: nothing more can be said. */
  get over(): boolean {
    return this.#dead || this.#exchange.response.destroyed
  }

  /** Sends one event. `token` is the number of output tokens of the choice so far, from 1. */
  async send(data: string, place: EventPlace, token = 0): Promise<void> {
    if (this.over) return
    this.#open()
    const death = this.#faults.find('die')
    if (death?.at === 'after_headers') return this.#die()
    if (death?.at === 'before_finish' && place !== 'token') return this.#die()
    if (death?.at === 'before_usage' && (place === 'usage' || place === 'done')) return this.#die()
    if (death?.at === 'before_done' && place === 'done') return this.#die()
    if (death?.at === 'mid_token' && token >= death.token) {
      await this.#exchange.write(`data: ${data.slice(0, Math.ceil(data.length / 2))}`)
      return this.#die()
    }
    await this.#exchange.write(`data: ${data}\n\n`)
  }

  /** Sends `[DONE]` and ends the answer. */
  async done(): Promise<void> {
    await this.send('[DONE]', 'done')
    if (!this.over) this.#exchange.end()
  }

  #open(): void {
    if (this.#opened) return
    this.#opened = true
    this.#exchange.openStream()
  }

  async #die(): Promise<void> {
    this.#dead = true
    await this.#exchange.die()
  }
}

/** Sends a whole JSON answer, or the part of it that an ordered death leaves. */
export async function sendWhole(exchange: Exchange, text: string, faults: CallFaults): Promise<void> {
  const death = faults.find('die')
  if (death === undefined) {
    exchange.text(text, 200, { 'content-type': 'application/json' })
    return
  }
  const length = Buffer.byteLength(text)
  exchange.response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(length) })
  exchange.response.flushHeaders()
  if (death.at !== 'after_headers') await exchange.write(text.slice(0, Math.ceil(text.length / 2)))
  await exchange.die()
}
