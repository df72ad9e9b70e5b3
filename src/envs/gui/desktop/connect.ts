import type { Duplex } from 'node:stream'
import x11, { type Display } from 'x11'
import { asked } from './asked.ts'

/** A connection to an X server, and the signal of its end. */
export interface Connection {
  readonly display: Display
  readonly over: AbortSignal
}

/** Connects over a stream to the socket of a box's X server. Throws `BROWSER_GONE`. */
export async function connect(stream: Duplex, cookie: Buffer): Promise<Connection> {
  const end = new AbortController()
  for (const event of ['end', 'close']) stream.once(event, () => end.abort())
  const over = end.signal
  const auth = { name: 'MIT-MAGIC-COOKIE-1', data: cookie.toString('latin1') }
  const display = await asked<Display>(over, 'the connection', (done) => {
    // What a request does wrong comes back to its own caller.
    x11.createClient({ stream, display: ':1', auth }, done).on('error', () => undefined)
  })
  // The library keeps the numbers of atoms once for all servers (x11 4.2, lib/xcore.js), but each server counts its own.
  display.client.atoms = { ...display.client.atoms }
  return { display, over }
}
