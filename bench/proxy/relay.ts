/**
 * The floor of anything in Node: `node:http` towards the harness, our own connections towards the engine, nothing read,
 * changed or recorded. With three exchanges it asks what `splice` must ask for a whole answer: render, generate, derender.
 */
import { createServer, type ServerResponse } from 'node:http'
import { type EngineLine, engineLine } from '../../src/proxy/http/engine-line/index.ts'

const before = ['/v1/chat/completions/render', '/inference/v1/generate']

/** Serves `engineUrl`; gives its port. */
export function startRelay(engineUrl: string, exchanges: 1 | 3): Promise<number> {
  const line = engineLine(engineUrl, { apiKey: null, dispatcher: null, connections: 8192 })
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const asked = Buffer.concat(parts)
      const last = exchanges === 1 ? (request.url ?? '') : '/v1/chat/completions/derender'
      const steps = exchanges === 1 || asked.includes('"stream":true') ? [] : before
      askAll(line, steps, asked, () => pass(line, steps.length > 0 ? last : (request.url ?? ''), asked, response))
    })
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', 4096, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** One after the other; what they say is not looked at. */
function askAll(line: EngineLine, [path, ...rest]: readonly string[], body: Buffer, then: () => void): void {
  if (path === undefined) {
    then()
    return
  }
  const ignore = (): void => {}
  line.ask(
    { path, headers: {}, body },
    { head: ignore, data: ignore, end: () => askAll(line, rest, body, then), broke: then },
    false,
  )
}

function pass(line: EngineLine, path: string, body: Buffer, response: ServerResponse): void {
  const whole: Buffer[] = []
  let streams = false
  line.ask(
    { path, headers: {}, body },
    {
      head: (status, headers) => {
        streams = String(headers['content-type']).startsWith('text/event-stream')
        if (!streams) return
        response.writeHead(status, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
      },
      data: (bytes) => (streams ? response.write(bytes) : whole.push(bytes)),
      end: () => {
        if (streams) {
          response.end()
          return
        }
        const bytes = Buffer.concat(whole)
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
        response.end(bytes)
      },
      broke: () => response.destroy(),
    },
    false,
  )
}
