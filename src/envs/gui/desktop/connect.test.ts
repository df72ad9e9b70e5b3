import { once } from 'node:events'
import { connect as dial, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { connect } from './connect.ts'

it('fails where the server hangs up while it is waited for, and not when its time is over', async () => {
  const server = createServer((socket) => socket.once('data', () => socket.end()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  try {
    await expect(connect(dial(port, '127.0.0.1'), Buffer.alloc(16))).rejects.toMatchObject({
      code: 'BROWSER_GONE',
      message: 'The X server is gone at the connection',
    })
  } finally {
    server.close()
  }
})
