/** The fake engine and the load generator of `bench/proxy.ts`, in a process of their own. Speaks IPC. */
import { Agent, createServer, request, type IncomingMessage } from 'node:http'

/** One order of the bench. */
export interface Order {
  readonly kind: 'unary' | 'stream' | 'ttfb'
  /** Base URL of the target and the bearers of its sessions, which the clients share out. */
  readonly url: string
  readonly keys: readonly string[]
  readonly clients: number
  /** For `unary` and `stream`. */
  readonly durationMs: number
}

/** What the load generator saw. */
export interface Load {
  readonly requests: number
  readonly events: number
  readonly errors: number
  /** Milliseconds to the first body byte, sorted; only for `ttfb`. */
  readonly firstByteMs: readonly number[]
}

const eventsPerStream = 100
const eventEveryMs = 20
const ids = Array.from({ length: 30 }, (_, i) => 1000 + i)
const entries = ids.map((id) => `{"token":"t${id}","logprob":-0.25,"bytes":[116],"top_logprobs":[]}`)
const head = '"id":"chatcmpl-1","created":1,"model":"bench"'
const whole = Buffer.from(
  `{${head},"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"${'word '.repeat(30)}"},"logprobs":{"content":[${entries.join(',')}]},"finish_reason":"stop","stop_reason":null,"token_ids":[${ids.join(',')}]}],"usage":{"prompt_tokens":200,"completion_tokens":30,"total_tokens":230},"prompt_token_ids":[${Array.from({ length: 200 }, (_, i) => i).join(',')}]}`,
)
const chunk = (content: string, finish: string, more: string) =>
  Buffer.from(
    `data: {${head},"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"${content}"},"logprobs":{"content":[{"token":"word ","logprob":-0.25,"bytes":[119,111,114,100,32],"top_logprobs":[]}]},"finish_reason":${finish},"token_ids":[1001]}]${more}}\n\n`,
  )
const first = chunk('word ', 'null', `,"prompt_token_ids":[${Array.from({ length: 200 }, (_, i) => i).join(',')}]`)
const middle = chunk('word ', 'null', '')
const last = chunk('', '"stop"', '')
const usage = Buffer.from(
  `data: {${head},"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":${eventsPerStream},"total_tokens":300}}\n\ndata: [DONE]\n\n`,
)

const server = createServer((incoming, response) => {
  const parts: Buffer[] = []
  incoming.on('data', (part: Buffer) => parts.push(part))
  incoming.on('end', () => {
    const body = Buffer.concat(parts)
    if (!body.includes('"stream":true')) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length })
      response.end(whole)
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(first)
    if (body.includes('"short":true')) {
      response.end(Buffer.concat([last, usage]))
      return
    }
    let sent = 1
    const timer = setInterval(() => {
      sent += 1
      if (sent < eventsPerStream) response.write(middle)
      else {
        clearInterval(timer)
        response.end(Buffer.concat([last, usage]))
      }
    }, eventEveryMs)
    response.once('close', () => clearInterval(timer))
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}` })
})

const prompt = 'Summarise this text for me, please. '.repeat(25)

process.on('message', (order: Order) => {
  void run(order).then((load) => process.send?.(load))
})

async function run(order: Order): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: order.clients })
  const total = { requests: 0, events: 0, errors: 0 }
  const firstByteMs: number[] = []
  const until = performance.now() + order.durationMs
  await Promise.all(
    Array.from({ length: order.clients }, async (_, client) => {
      for (let turn = 0; performance.now() < until; turn += 1) {
        const body = JSON.stringify({
          model: 'bench',
          messages: [{ role: 'user', content: prompt }],
          ...(order.kind === 'unary' ? {} : { stream: true }),
          ...(order.kind === 'ttfb' ? { short: true } : {}),
          nonce: `${client}/${turn}`,
        })
        const seen = await once(order, agent, body, order.keys[(client + turn) % order.keys.length] ?? '')
        total.requests += 1
        total.events += seen.events
        total.errors += seen.ok ? 0 : 1
        firstByteMs.push(seen.firstByteMs)
      }
    }),
  )
  agent.destroy()
  return { ...total, firstByteMs: firstByteMs.sort((a, b) => a - b) }
}

function once(
  order: Order,
  agent: Agent,
  body: string,
  key: string,
): Promise<{ ok: boolean; events: number; firstByteMs: number }> {
  return new Promise((resolve) => {
    const started = performance.now()
    const out = request(
      `${order.url}/chat/completions`,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          authorization: `Bearer ${key}`,
        },
      },
      (response: IncomingMessage) => {
        let firstByteMs = 0
        let events = 0
        response.on('data', (part: Buffer) => {
          if (firstByteMs === 0) firstByteMs = performance.now() - started
          for (let at = part.indexOf('\n\n'); at !== -1; at = part.indexOf('\n\n', at + 2)) events += 1
        })
        response.on('end', () => resolve({ ok: response.statusCode === 200, events, firstByteMs }))
        response.on('error', () => resolve({ ok: false, events, firstByteMs }))
      },
    )
    out.on('error', () => resolve({ ok: false, events: 0, firstByteMs: 0 }))
    out.end(body)
  })
}
