/**
 * A wire between proxy and engine that can be cut at any byte of the engine's answer. It knows TCP and the first line
 * of a request, nothing else: what it cuts is what really was on its way.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Where to cut, from what has come so far (latin1, headers first): an offset, or null for not yet. */
export type Cut = (soFar: string) => number | null

export interface Guillotine extends AsyncDisposable {
  readonly url: string
  /** From now on every answer of a path is cut, also that of a second try. */
  arm(path: string, cut: Cut): void
  disarm(): void
}

interface Armed {
  readonly path: string
  readonly cut: Cut
}

export async function startGuillotine(engineUrl: string): Promise<Guillotine> {
  const engine = new URL(engineUrl)
  let armed: Armed | null = null
  const sockets = new Set<Socket>()

  const server = createServer((client) => {
    const upstream = connect(Number(engine.port), engine.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    let target: Armed | null = null
    let seen = Buffer.alloc(0)
    let passed = 0
    client.on('data', (bytes: Buffer) => {
      if (armed !== null && bytes.subarray(0, 200).toString('latin1').startsWith(`POST ${armed.path} `)) {
        target = armed
        seen = Buffer.alloc(0)
        passed = 0
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes: Buffer) => {
      if (target === null) {
        client.write(bytes)
        return
      }
      seen = Buffer.concat([seen, bytes])
      const at = target.cut(seen.toString('latin1'))
      if (at === null) {
        client.write(bytes)
        passed = seen.length
        return
      }
      target = null
      const end = () => client.destroy()
      if (at > passed) client.write(seen.subarray(passed, at), end)
      else end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    arm: (path, cut) => {
      armed = { path, cut }
    },
    disarm: () => {
      armed = null
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const at = (soFar: string, mark: string, plus = 0): number | null => {
  const index = soFar.indexOf(mark)
  return index === -1 || index + plus > soFar.length ? null : index + plus
}
const afterHeaders = (soFar: string): number | null => at(soFar, '\r\n\r\n', 4)
const finish = (soFar: string): number | null => {
  const index = soFar.search(/"finish_reason":\s?"/)
  return index === -1 ? null : index
}

/** In the second of the two bytes of an umlaut. */
const midToken: Cut = (soFar) => at(soFar, '\u00c3', 1) ?? at(soFar, '\\u00', 3)

/** The same for a route that gives ids and no text. */
export const midId: Cut = (soFar) => at(soFar, '"token_ids":', 14)

/** Every class of places in a streamed answer of vLLM's chat and generate routes, in order. */
export const streamCuts: Readonly<Record<string, Cut>> = {
  before_headers: () => 0,
  in_headers: (soFar) => (soFar.length > 20 ? 20 : null),
  after_headers: afterHeaders,
  mid_event: (soFar) => at(soFar, 'data: {', 30),
  between_events: (soFar) => at(soFar, '}\n\n', 3),
  mid_token: midToken,
  before_finish: (soFar) => {
    const index = finish(soFar)
    return index === null ? null : soFar.lastIndexOf('data: ', index)
  },
  in_finish: (soFar) => {
    const index = finish(soFar)
    return index === null ? null : index + 5
  },
  before_usage: (soFar) => {
    const index = finish(soFar)
    const end = index === null ? -1 : soFar.indexOf('\n\n', index)
    return end === -1 ? null : end + 2
  },
  before_done: (soFar) => at(soFar, 'data: [DONE]'),
  in_done: (soFar) => at(soFar, 'data: [DONE]', 8),
}

/** Every class of places in a whole answer. */
export const wholeCuts: Readonly<Record<string, Cut>> = {
  before_headers: () => 0,
  in_headers: (soFar) => (soFar.length > 20 ? 20 : null),
  after_headers: afterHeaders,
  mid_token: midToken,
  before_usage: (soFar) => at(soFar, '"usage"'),
  before_the_last_byte: (soFar) => {
    const body = afterHeaders(soFar)
    const length = /content-length: (\d+)/i.exec(soFar)?.[1]
    if (body === null || length === undefined || soFar.length < body + Number(length)) return null
    return body + Number(length) - 1
  },
}
