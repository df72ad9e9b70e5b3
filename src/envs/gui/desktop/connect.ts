import type { Duplex } from 'node:stream'
import x11, { type Display } from 'x11'
import { asked } from './asked.ts'

/** Connects over a stream to the socket of a box's X server. Throws `BROWSER_GONE`. */
export async function connect(stream: Duplex, cookie: Buffer): Promise<Display> {
  const auth = { name: 'MIT-MAGIC-COOKIE-1', data: cookie.toString('latin1') }
  const display = await asked<Display>('the connection', (done) => {
    // What a request does wrong comes back to its own caller.
    x11.createClient({ stream, display: ':1', auth }, done).on('error', () => undefined)
  })
  // The library keeps the numbers of atoms once for all servers (x11 4.2, lib/xcore.js), but each server counts its own.
  display.client.atoms = { ...display.client.atoms }
  return display
}
