import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port of loopback that was free a moment ago, for a server that cannot take one by itself. It is below the ports that
 * the kernel gives to outgoing connections and to `listen(0)` (from 32768 on Linux), so only another caller can take it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer().listen(randomInt(20_000, 32_768), '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      // Somebody has it.
      continue
    }
    const address = server.address()
    server.close()
    await once(server, 'close')
    if (typeof address === 'object' && address !== null) return address.port
  }
}
