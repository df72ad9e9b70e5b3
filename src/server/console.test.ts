import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import express from 'express'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PaddockError } from '../core/index.ts'
import { type EngineConsole, engineConsole } from './console.ts'
import { consolePath } from '../access/index.ts'
import { answerFailure } from './failure.ts'

const token = 'a-control-token-of-the-test'
let engine: Server
let front: Server
let console_: EngineConsole
let onEngine: (request: IncomingMessage, response: ServerResponse) => void
const sockets = new Set<Socket>()

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.on('connection', (socket: Socket) => sockets.add(socket))
  return (server.address() as AddressInfo).port
}

let port: number
let enginePort: number
beforeEach(async () => {
  engine = createServer((asked, answer) => onEngine(asked, answer))
  engine.on('upgrade', (asked, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    socket.write(`${asked.url ?? ''} ${asked.headers.authorization ?? 'no key'}\n`)
    socket.pipe(socket)
  })
  enginePort = await listen(engine)
  console_ = engineConsole(`http://127.0.0.1:${enginePort}`, ({ headers }) => {
    if (headers.authorization !== `Bearer ${token}`) throw new PaddockError('CONTROL_TOKEN', 'no token')
  })
  const app = express()
  app.use(consolePath, console_.request)
  app.use(answerFailure)
  front = createServer(app)
  front.on('upgrade', (asked, socket, head) => console_.upgrade(asked, socket, head))
  port = await listen(front)
})
afterEach(() => {
  console_.close()
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  front.close()
  engine.close()
})

describe('the engine console', () => {
  it('passes requests through without the control token', async () => {
    onEngine = (asked, answer) => answer.end(`${asked.url ?? ''} ${asked.headers.authorization ?? 'no key'}`)
    const answer = await fetch(`http://127.0.0.1:${port}${consolePath}/stats?a=1`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(await answer.text()).toBe('/stats?a=1 no key')
  })

  it('cancels the upstream request when the client leaves', async () => {
    const arrived = Promise.withResolvers<IncomingMessage>()
    onEngine = (asked, answer) => {
      answer.write('first')
      arrived.resolve(asked)
    }
    const client = request({ port, path: `${consolePath}/stream` })
    client.on('error', () => undefined)
    client.end()
    const [answer] = (await once(client, 'response')) as [IncomingMessage]
    answer.on('error', () => undefined)
    const upstream = await arrived.promise
    const gone = once(upstream.socket, 'close')
    client.destroy()
    await gone
  })

  it('resets the client when the engine dies in the middle', async () => {
    onEngine = (_asked, answer) => {
      answer.writeHead(200, { 'content-length': '1000' })
      answer.write('first', () => answer.socket?.destroy())
    }
    const answer = await fetch(`http://127.0.0.1:${port}${consolePath}/stream`)
    await expect(answer.text()).rejects.toThrow()
  })

  it('answers ENGINE_UNREACHABLE when nothing listens', async () => {
    engine.close()
    for (const socket of sockets) socket.destroy()
    const answer = await fetch(`http://127.0.0.1:${port}${consolePath}/`)
    expect(answer.status).toBe(502)
    expect(await answer.json()).toMatchObject({ error: { code: 'ENGINE_UNREACHABLE' } })
  })

  it.each([
    ['the token', `${consolePath}/ws`, `authorization: Bearer ${token}\r\n`, '/ws no key\nping'],
    ['no token', `${consolePath}/ws`, '', 'HTTP/1.1 401 Unauthorized'],
    ['another path', '/elsewhere', `authorization: Bearer ${token}\r\n`, 'HTTP/1.1 404 Not Found'],
  ])('treats a WebSocket upgrade with %s', async (_what, path, header, expected) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n${header}\r\n`)
    let text = ''
    for await (const chunk of socket) {
      text += String(chunk)
      if (text.includes('no key\n') && !text.includes('ping')) socket.write('ping')
      if (text.includes(expected)) break
    }
    expect(text).toContain(expected)
  })
})
