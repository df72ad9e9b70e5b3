import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Client } from './client.ts'

const view = { streamed: true, wantsUsage: false, wantsLogprobs: false }

/** What a client gets of what `serve` does in one turn. */
async function answered(serve: (client: Client, response: ServerResponse) => void) {
  const server = createServer((_request, response) =>
    serve(new Client(response, view, ['x-request-id', '7']), response),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [response] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response')
  const body = await text(response)
  server.close()
  return { status: response.statusCode, headers: response.headers, body }
}

test('the first event leaves with the head, and at once', async () => {
  const waiting: (number | undefined)[] = []
  const seen = await answered((client, response) => {
    client.startStream()
    waiting.push(response.socket?.writableLength)
    client.write(Buffer.from('data: 1\n\n'))
    waiting.push(response.socket?.writableLength)
    client.write(Buffer.from('data: 2\n\n'))
    client.end()
  })
  expect(waiting[0]).toBeGreaterThan(0)
  expect(waiting[1]).toBe(0)
  expect(seen.headers).toMatchObject({ 'content-type': 'text/event-stream; charset=utf-8', 'x-request-id': '7' })
  expect(seen.body).toBe('data: 1\n\ndata: 2\n\n')
})

test('a head without an event leaves with the end of the turn', async () => {
  const seen = await answered((client, response) => {
    client.startStream()
    setImmediate(() => {
      client.end(Buffer.from(`data: ${response.socket?.writableLength}\n\n`))
    })
  })
  expect(seen.body).toBe('data: 0\n\n')
})

test('a whole answer says how long it is, and whose it is', async () => {
  const seen = await answered((client) => client.sendJson(200, Buffer.from('{"é":1}')))
  expect(seen).toMatchObject({
    status: 200,
    headers: { 'content-type': 'application/json', 'content-length': '8', 'x-request-id': '7' },
    body: '{"é":1}',
  })
})
