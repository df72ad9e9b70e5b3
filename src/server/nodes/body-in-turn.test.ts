import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Response } from 'express'
import { afterEach, expect, it } from 'vitest'
import { bodyInTurn } from './body-in-turn.ts'
import { ByteGate } from './byte-gate.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** A server with room for 100 bytes that answers when it is told to. */
async function serving() {
  const gate = new ByteGate(100)
  const read = new Map<string, Response>()
  const app = express()
  app.use(bodyInTurn(gate, 80))
  app.post('/:name', express.raw({ limit: 80, type: () => true }), ({ params }, response) => {
    read.set(params.name, response)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  const { port } = server.address() as AddressInfo
  const post = (name: string, bytes: number, signal?: AbortSignal): Promise<number> =>
    fetch(`http://127.0.0.1:${port}/${name}`, {
      method: 'POST',
      body: new Uint8Array(bytes),
      ...(signal === undefined ? {} : { signal }),
    }).then(({ status }) => status)
  return { gate, post, read: () => [...read.keys()], answer: (name: string) => read.get(name)?.end() }
}

it('reads a body when there is room, and has room again when it is answered', async () => {
  const { gate, post, read, answer } = await serving()
  const first = post('first', 60)
  await expect.poll(read).toEqual(['first'])
  const second = post('second', 60)
  await expect.poll(() => gate.waiting).toBe(1)
  answer('first')
  expect(await first).toBe(200)
  await expect.poll(read).toEqual(['first', 'second'])
  answer('second')
  expect(await second).toBe(200)
})

it('has room for others when somebody goes away, before or after the body was read', async () => {
  const { gate, post, read, answer } = await serving()
  const [one, other] = [new AbortController(), new AbortController()]
  const reading = post('reading', 60, one.signal)
  await expect.poll(read).toEqual(['reading'])
  const waiting = post('waiting', 60, other.signal)
  await expect.poll(() => gate.waiting).toBe(1)
  other.abort()
  await expect(waiting).rejects.toThrow()
  await expect.poll(() => gate.waiting).toBe(0)
  const last = post('last', 60)
  await expect.poll(() => gate.waiting).toBe(1)
  one.abort()
  await expect(reading).rejects.toThrow()
  await expect.poll(read).toEqual(['reading', 'last'])
  answer('last')
  expect(await last).toBe(200)
})

it('refuses what is larger than the largest body, and has its room again', async () => {
  const { post, read, answer } = await serving()
  expect(await post('huge', 500)).toBe(413)
  const next = post('next', 80)
  await expect.poll(read).toEqual(['next'])
  answer('next')
  expect(await next).toBe(200)
})
