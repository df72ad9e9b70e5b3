import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { egressGate } from '../index.ts'

/** An address that a box may be let reach: of this machine, and not of loopback. */
const own = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

/** A connection of a box that takes what it is told when it is let. */
class SlowBox extends Duplex {
  readonly told: Buffer[] = []
  #take: (() => void) | null = null
  #isSlow = true

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.told.push(chunk)
    if (this.#isSlow && this.told.length > 1) this.#take = done
    else done()
  }

  takeAll(): void {
    this.#isSlow = false
    this.#take?.()
  }
}

it.skipIf(own === undefined)(
  'a box that reads slowly gets the end of what a server said that is gone by then',
  async () => {
    const server = createServer((socket) => socket.end('the end')).listen(0, '0.0.0.0')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const opened: Socket[] = []
    const note = (message: unknown): void => void opened.push((message as { readonly socket: Socket }).socket)
    subscribe('net.client.socket', note)
    const gate = egressGate({ policy: { allow: [`${own}/32`] }, onAttempt: () => undefined })
    const box = new SlowBox()
    gate.connect({ url: `${own}:${port}` } as IncomingMessage, box, Buffer.alloc(0))
    box.push(null)
    while (opened.length === 0) await new Promise(setImmediate)
    unsubscribe('net.client.socket', note)
    await once(opened[0] ?? box, 'close')
    box.takeAll()
    if (!box.closed) await once(box, 'close')
    expect(Buffer.concat(box.told).toString()).toBe('HTTP/1.1 200 Connection Established\r\n\r\nthe end')
    expect(box.writableFinished).toBe(true)
    gate.close()
    server.close()
  },
)
