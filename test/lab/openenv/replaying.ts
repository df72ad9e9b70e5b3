/**
 * A server that speaks as OpenEnv's did when `frames.json` was recorded: `node replaying.ts PORT [FAULT]`. It has
 * one place for a session, as OpenEnv's servers have unless they say otherwise. With FAULT it fails in that way. It prints its
 * port; to the file `PIDS` it writes its process id and that of a child which ends only when it is killed.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'

interface Recorded {
  readonly schema: object
  readonly exchanges: readonly { readonly ask: object; readonly answer: object }[]
}
const { schema, exchanges }: Recorded = JSON.parse(readFileSync(new URL('./frames.json', import.meta.url), 'utf8'))
const [port = '', fault = ''] = process.argv.slice(2)
if (fault === 'exits at once') {
  console.error('no such dataset')
  process.exit(3)
}
let busy = false

const server = createServer((request, response) => {
  response.statusCode = fault === 'is never healthy' ? 503 : 200
  response.end(JSON.stringify(request.url === '/schema' ? schema : { status: 'healthy' }))
})
server.on('upgrade', (request, socket: Socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  const full = busy
  busy = true
  socket.on('close', () => (busy &&= full))
  socket.on('error', () => undefined)
  if (full) {
    socket.write(framed(JSON.stringify({ type: 'error', data: { message: 'full', code: 'CAPACITY_REACHED' } })))
    socket.end(Buffer.from([0x88, 0]))
    return
  }
  let seen = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    seen = Buffer.concat([seen, chunk])
    for (let next = unframed(seen); next !== null; next = unframed(seen)) {
      seen = seen.subarray(next.size)
      if (next.isText) hear(socket, JSON.parse(next.text))
    }
  })
})
server.listen(Number(port), '127.0.0.1', () => {
  const pids = process.env['PIDS']
  if (pids !== undefined) {
    const child = spawn('/bin/sh', ['-c', "trap '' TERM; while :; do sleep 600; done"], { stdio: 'ignore' })
    writeFileSync(pids, JSON.stringify([process.pid, child.pid]))
  }
  console.log(JSON.stringify(server.address()))
})

function hear(socket: Socket, ask: { readonly type: string; readonly data?: { readonly tool_name?: string } }): void {
  if (ask.type === 'close') {
    busy = false
    socket.end(Buffer.from([0x88, 0]))
    return
  }
  const say = (frame: object): void => void socket.write(framed(JSON.stringify(frame)))
  if (ask.data?.tool_name === 'look') {
    switch (fault) {
      case 'dies':
        process.exit(1)
      case 'hangs':
        return
      case 'closes':
        socket.end(Buffer.from([0x88, 0]))
        return
      case 'answers nonsense':
        return say({ type: 'observation', data: { observation: {}, reward: 'a lot', done: false } })
      case 'fails':
        return say({ type: 'error', data: { message: 'list index out of range', code: 'EXECUTION_ERROR' } })
    }
  }
  const known = exchanges.find((exchange) => isDeepStrictEqual(exchange.ask, ask))
  say(
    known?.answer ?? {
      type: 'error',
      data: { message: `not recorded: ${JSON.stringify(ask)}`, code: 'EXECUTION_ERROR' },
    },
  )
  if (fault === 'dies unseen' && ask.data?.tool_name === 'try_code') process.exit(1)
}

/** RFC 6455 §5.2, one unmasked frame of text. */
function framed(text: string): Buffer {
  const data = Buffer.from(text)
  const head = data.length < 126 ? Buffer.from([0x81, data.length]) : Buffer.from([0x81, 126, 0, 0])
  if (data.length >= 126) head.writeUInt16BE(data.length, 2)
  return Buffer.concat([head, data])
}

/** The first frame that a client sent, of less than 64 KiB; null while it is not whole. */
function unframed(seen: Buffer): { readonly size: number; readonly text: string; readonly isText: boolean } | null {
  const short = (seen[1] ?? 0) & 0x7f
  const at = short === 126 ? 4 : 2
  if (seen.length < at + 4) return null
  const length = short === 126 ? seen.readUInt16BE(2) : short
  const size = at + 4 + length
  if (seen.length < size) return null
  const mask = seen.subarray(at, at + 4)
  const data = seen.subarray(at + 4, size).map((byte, index) => byte ^ (mask[index % 4] ?? 0))
  return { size, text: Buffer.from(data).toString('utf8'), isText: ((seen[0] ?? 0) & 0x0f) === 1 }
}
