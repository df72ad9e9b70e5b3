import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import fc from 'fast-check'
import { Agent, type Dispatcher } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { engineLine, type EngineLine, type LineBreak } from './index.ts'

/** What an exchange brought. */
interface Seen {
  status: number | null
  headers: Readonly<Record<string, unknown>>
  body: string
  /** `end`, or how it broke. */
  last: 'end' | LineBreak['kind']
}

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** An engine that answers the bytes that `answer` writes, once a whole request with a body of two bytes came. */
async function engine(
  answer: (socket: Socket, request: string, connection: number) => void,
  dispatcher: Dispatcher | null = null,
): Promise<{ line: EngineLine; server: Server }> {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    const connection = connections
    let text = ''
    socket.on('error', () => {})
    socket.setNoDelay(true)
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end === -1 || text.length < end + 6) return
      const request = text
      text = ''
      answer(socket, request, connection)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const line = engineLine(`http://127.0.0.1:${port}/root`, { apiKey: 'secret', dispatcher, connections: 1 })
  open.push(line, server)
  return { line, server }
}

function ask(line: EngineLine, fresh = false): Promise<Seen> {
  return new Promise((resolve) => {
    const seen: Seen = { status: null, headers: {}, body: '', last: 'end' }
    line.ask(
      { path: '/v1/x', headers: { 'x-request-id': '1' }, body: Buffer.from('{}') },
      {
        head: (status, headers) => Object.assign(seen, { status, headers: { ...headers } }),
        data: (bytes) => {
          seen.body += bytes.toString('latin1')
        },
        end: () => resolve(seen),
        broke: ({ kind }) => resolve({ ...seen, last: kind }),
      },
      fresh,
    )
  })
}

test('a request is what an engine expects, and the connection is kept for the next one', async () => {
  const requests: string[] = []
  const { line } = await engine((socket, request, connection) => {
    requests.push(request)
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${connection}`)
  })
  expect((await ask(line)).body).toBe('1')
  expect((await ask(line)).body).toBe('1')
  expect((await ask(line, true)).body).toBe('2')
  expect(line.stats()).toEqual({ connections: 2, pending: 0 })
  expect(requests[0]).toMatch(
    /^POST \/root\/v1\/x HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\ncontent-type: application\/json\r\naccept-encoding: identity\r\nauthorization: Bearer secret\r\nx-request-id: 1\r\ncontent-length: 2\r\n\r\n\{\}$/,
  )
})

test('any division into reads gives the same answer', async () => {
  let pieces: readonly string[] = []
  const { line } = await engine((socket) => {
    const sent = pieces
    const next = (at: number): void => {
      const piece = sent[at]
      if (piece !== undefined) socket.write(piece, 'latin1', () => setImmediate(next, at + 1))
    }
    next(0)
  })
  const bodies = fc.array(fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 40 }), { maxLength: 6 })
  const forms = fc.constantFrom('length' as const, 'chunked' as const)
  const cuts = fc.array(fc.nat({ max: 300 }), { maxLength: 8 })
  const property = fc.asyncProperty(bodies, forms, cuts, fc.boolean(), async (parts, form, at, early) => {
    const body = parts.join('')
    const chunks = parts.map((part, i) => `${part.length.toString(16)}${i % 2 === 0 ? '' : ';a="b"'}\r\n${part}\r\n`)
    const framed =
      form === 'length'
        ? `Content-Length: ${body.length}\r\n\r\n${body}`
        : `Transfer-Encoding: Chunked\r\n\r\n${chunks.join('')}0\r\n${early ? 'x-more: 1\r\n' : ''}\r\n`
    const wire = `${early ? 'HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n' : ''}HTTP/1.1 200 OK\r\nA: b\r\na: c\r\n${framed}`
    const ends = [...at.filter((one) => one < wire.length).sort((a, b) => a - b), wire.length]
    pieces = ends.map((end, i) => wire.slice(ends[i - 1] ?? 0, end))
    const seen = await ask(line)
    expect(seen).toMatchObject({ status: 200, body, last: 'end', headers: { a: ['b', 'c'] } })
  })
  await fc.assert(property, { numRuns: 150, seed: 20261122 })
  // One connection carried all of them: nothing was left over anywhere.
  expect(line.stats().connections).toBe(1)
})

const ok = 'HTTP/1.1 200 OK\r\n'
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`
test.each([
  ['a length beside chunks', `${ok}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['chunks beside a length', `${ok}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`],
  ['two lengths', `${ok}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`],
  ['one length twice', `${ok}content-length: 5\r\ncontent-length: 5\r\n\r\nhello`],
  ['a list of lengths', `${ok}content-length: 5, 5\r\n\r\nhello`],
  ['a signed length', `${ok}content-length: +5\r\n\r\nhello`],
  ['a length in hexadecimal', `${ok}content-length: 0x5\r\n\r\nhello`],
  ['an empty length', `${ok}content-length:\r\n\r\nhello`],
  ['another coding before chunks', `${ok}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['chunks of HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a chunk size with a sign', `${chunked}+5\r\nhello\r\n0\r\n\r\n`],
  ['a chunk size with a prefix', `${chunked}0x5\r\nhello\r\n0\r\n\r\n`],
  ['a chunk size that is missing', `${chunked}\r\nhello\r\n0\r\n\r\n`],
  ['a space behind a chunk size', `${chunked}5 \r\nhello\r\n0\r\n\r\n`],
  ['a chunk size too large to be one', `${chunked}fffffffff\r\nhello`],
  ['a chunk longer than its size', `${chunked}4\r\nhello\r\n0\r\n\r\n`],
  ['a chunk that ends in other bytes', `${chunked}5\r\nhelloXX0\r\n\r\n`],
  ['a size line that ends in another byte', `${chunked}5\rXhello\r\n0\r\n\r\n`],
  ['a bare line feed behind a chunk size', `${chunked}5\nhello\r\n0\r\n\r\n`],
  ['a line feed in a chunk extension', `${chunked}5;a\nb\r\nhello\r\n0\r\n\r\n`],
  ['a chunk extension without end', `${chunked}5;${'a'.repeat(5000)}`],
  ['a trailer that is no field', `${chunked}0\r\nno field\r\n\r\n`],
  ['trailers without end', `${chunked}0\r\n${'a: b\r\n'.repeat(3000)}`],
  ['a space before a colon', `${ok}content-length : 5\r\n\r\nhello`],
  ['a folded line', `${ok}a: b\r\n content-length: 5\r\n\r\nhello`],
  ['a bare line feed between fields', `${ok}a: b\ncontent-length: 5\r\n\r\nhello`],
  ['a bare carriage return in a value', `${ok}a: b\rcontent-length: 5\r\n\r\nhello`],
  ['a NUL in a value', `${ok}a: \u0000\r\ncontent-length: 5\r\n\r\nhello`],
  ['another protocol', 'HTTP/2 200\r\ncontent-length: 5\r\n\r\nhello'],
  ['a status that is none', 'HTTP/1.1 99 X\r\n\r\n'],
  ['a change of protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
  ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['a flood of fields', `${ok}${'a: b\r\n'.repeat(200)}\r\n`],
  ['a head without end', `${ok}${'a: b\r\n'.repeat(10_000)}`],
  ['a flood of forerunners', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5000)],
])('refused: %s', async (_name, wire) => {
  const { line, server } = await engine((socket) => socket.write(wire, 'latin1'))
  const cut = new Promise((resolve) => server.once('connection', (socket) => socket.once('close', resolve)))
  expect(await ask(line)).toMatchObject({ last: 'malformed' })
  // The connection is not used for anything else.
  await cut
})

test.each([
  ['before the head', '', 'died'],
  ['in the head', 'HTTP/1.1 200 O', 'died'],
  ['before the length is reached', `${ok}content-length: 5\r\n\r\nhell`, 'died'],
  ['in a chunk', `${chunked}5\r\nhel`, 'died'],
  ['before the last chunk', `${chunked}5\r\nhello\r\n`, 'died'],
  ['before the end of the trailers', `${chunked}5\r\nhello\r\n0\r\n`, 'died'],
  ['where nothing else tells the end', `${ok}content-type: text/plain\r\n\r\nhello`, 'end'],
])('an engine that closes %s', async (_name, wire, last) => {
  const { line } = await engine((socket) => socket.end(wire))
  expect((await ask(line)).last).toBe(last)
})

test('what an engine says out of turn is the answer to nothing', async () => {
  const sockets: Socket[] = []
  const { line } = await engine((socket, _request, connection) => {
    sockets.push(socket)
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${connection}`)
  })
  await ask(line)
  const [first] = sockets
  if (first === undefined) throw new Error('no connection')
  first.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
  await once(first, 'close')
  expect(await ask(line)).toMatchObject({ body: '2', last: 'end' })
})

test('bytes behind an answer end its connection', async () => {
  const { line } = await engine((socket, _request, connection) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${connection}HTTP/1.1 200 OK\r\n`)
  })
  expect(await ask(line)).toMatchObject({ body: '1', last: 'end' })
  expect(await ask(line)).toMatchObject({ body: '2', last: 'end' })
})

test.each(['connection: close', 'keep-alive: timeout=1'])('%s: the connection is not used again', async (field) => {
  const { line } = await engine((socket, _request, connection) => {
    socket.write(`HTTP/1.1 200 OK\r\n${field}\r\ncontent-length: 1\r\n\r\n${connection}`)
  })
  expect((await ask(line)).body).toBe('1')
  expect((await ask(line)).body).toBe('2')
})

test('nobody listens', async () => {
  const { line, server } = await engine(() => {})
  await new Promise((resolve) => server.close(resolve))
  expect((await ask(line)).last).toBe('unreachable')
})

test('a key that would break the head is refused', () => {
  expect(() => engineLine('http://127.0.0.1:1', { apiKey: 'a\r\nx: y', dispatcher: null, connections: 1 })).toThrow(
    'authorization',
  )
})

test('an exchange that is paused reads nothing, and one that is aborted is told nothing', async () => {
  const { line } = await engine((socket) => {
    socket.write(`${ok}content-length: 2000000\r\n\r\n${'x'.repeat(2_000_000)}`)
  })
  let got = 0
  let ended = (): void => {}
  const end = new Promise<void>((resolve) => {
    ended = resolve
  })
  const exchange = line.ask(
    { path: '/', headers: {}, body: Buffer.from('{}') },
    {
      head: () => exchange.pause(),
      data: (bytes) => {
        got += bytes.length
      },
      end: () => ended(),
      broke: () => {},
    },
    false,
  )
  // Another exchange goes all the way while this one reads no more than came with its head.
  const other = await ask(line)
  expect(other.body.length).toBe(2_000_000)
  expect(got).toBeLessThan(100_000)
  exchange.resume()
  await end
  expect(got).toBe(2_000_000)

  const aborted = await new Promise<string>((resolve) => {
    const cut = line.ask(
      { path: '/', headers: {}, body: Buffer.from('{}') },
      {
        head: () => {
          cut.abort()
          setImmediate(() => setImmediate(() => resolve('nothing')))
        },
        data: () => resolve('data'),
        end: () => resolve('end'),
        broke: () => resolve('broke'),
      },
      true,
    )
  })
  expect(aborted).toBe('nothing')
})

test.each([
  ['an answer', `${ok}content-length: 5\r\n\r\nhello`, { status: 200, body: 'hello', last: 'end' }],
  ['chunks', `${chunked}5\r\nhello\r\n0\r\n\r\n`, { status: 200, body: 'hello', last: 'end' }],
  ['a death', `${chunked}5\r\nhel`, { status: 200, body: 'hel', last: 'died' }],
  ['a death before the length is reached', `${ok}content-length: 5\r\n\r\nhel`, { body: 'hel', last: 'died' }],
  ['a length beside chunks', `${ok}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`, { last: 'malformed' }],
  ['a chunk size that is none', `${chunked}zz\r\n`, { last: 'malformed' }],
])('a dispatcher that is given tells the same of %s', async (_name, wire, expected) => {
  const dispatcher = new Agent()
  open.push(dispatcher)
  const { line } = await engine((socket) => socket.end(wire), dispatcher)
  expect(await ask(line)).toMatchObject(expected)
})

test('a dispatcher that is given finds nobody', async () => {
  const dispatcher = new Agent()
  open.push(dispatcher)
  const { line, server } = await engine(() => {}, dispatcher)
  await new Promise((resolve) => server.close(resolve))
  expect((await ask(line)).last).toBe('unreachable')
})
