/** How a recording proxy is written in an afternoon: parse everything, emit it anew, store whole snapshots as it comes. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import Database from 'better-sqlite3'

/** Serves chat completions of `engineUrl`; gives its port. */
export function startNaive(engineUrl: string, file: string): Promise<number> {
  const db = new Database(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
  db.exec('CREATE TABLE calls (snapshot TEXT NOT NULL)')
  const insert = db.prepare('INSERT INTO calls VALUES (?)')
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const asked = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>
    const sent = { ...asked, logprobs: true, return_token_ids: true }
    const answer = await fetch(`${engineUrl}${request.url}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(sent),
    })
    if (asked['stream'] !== true) {
      const told = JSON.parse(await answer.text()) as Record<string, unknown>
      insert.run(JSON.stringify({ asked, told }))
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(stripped(told)))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    const events: unknown[] = []
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of answer.body ?? []) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === 'data: [DONE]') response.write('data: [DONE]\n\n')
        else {
          const told = JSON.parse(line.slice(6)) as Record<string, unknown>
          events.push(told)
          response.write(`data: ${JSON.stringify(stripped(told))}\n\n`)
        }
      }
    }
    insert.run(JSON.stringify({ asked, events }))
    response.end()
  }

  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', 4096, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Without what was asked for on the recorder's behalf. */
function stripped(told: Record<string, unknown>): Record<string, unknown> {
  const { prompt_token_ids: _ids, ...rest } = told
  const choices = (told['choices'] as Record<string, unknown>[]).map(({ token_ids: _tokens, ...choice }) => ({
    ...choice,
    logprobs: null,
  }))
  return { ...rest, choices }
}
