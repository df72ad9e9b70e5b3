/** A server that says what a shape says, to whoever names the shape in its question. */
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { type Answer, honest, json, type Shape, vocabulary } from './shapes.ts'

export interface HostileEngine extends AsyncDisposable {
  readonly url: string
  /** How the last generation was asked for. */
  readonly asked: { stream: boolean }[]
}

export async function hostileEngine(shapes: readonly Shape[]): Promise<HostileEngine> {
  const asked: { stream: boolean }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url?.startsWith('/server_info') === true)
        return tell(response, { vllm_config: { vocab_size: vocabulary } })
      if (request.url === '/v1/models') return tell(response, { data: [{ id: 'm' }] })
      if (request.url !== '/v1/chat/completions') return tell(response, {}, 404)
      const body = JSON.parse(Buffer.concat(chunks).toString()) as {
        stream?: boolean
        messages: { content: string }[]
      }
      asked.push({ stream: body.stream === true })
      const shape = shapes.find(({ name }) => name === body.messages[0]?.content)
      const answer = honest()
      say(response, shape?.spoils(answer) ?? answer, body.stream === true ? (shape?.frames ?? plain) : null)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

const plain = (payload: string): string => `data: ${payload}\n\n`

/** `frames` null: whole. */
function say(response: ServerResponse, { whole, events }: Answer, frames: typeof plain | null): void {
  if (frames === null) return tell(response, whole)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end([...events.map(json), '[DONE]'].map(frames).join(''))
}

function tell(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(json(body))
}
