/** The fake engine and the load generator of `bench/proxy.ts`, in a process of their own. Speaks IPC. */
import { Agent, request, type IncomingMessage } from 'node:http'
import { prompt, startEngine } from './engine.ts'

/** One order of the bench. */
export interface Order {
  /** `stream` and `unary` ask again and again; `open` opens each stream once, spread over the duration. */
  readonly kind: 'unary' | 'stream' | 'first' | 'open'
  /** Base URL of the target and the bearers of its sessions, which the clients share out. */
  readonly url: string
  readonly keys: readonly string[]
  readonly clients: number
  readonly durationMs: number
  /** Of a stream. */
  readonly events: number
  readonly everyMs: number
  /** Each client has a connection and a session of its own; default: all share a pool, and its connections carry all sessions. */
  readonly ownConnections?: boolean
}

/** What the load generator saw. */
export interface Load {
  readonly requests: number
  readonly events: number
  readonly errors: number
  /** Milliseconds to the first body byte, sorted. */
  readonly firstByteMs: readonly number[]
}

process.send?.({ url: await startEngine() })
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
      const own = order.ownConnections === true ? new Agent({ keepAlive: true, maxSockets: 1 }) : null
      const spread = order.kind === 'open' ? order.durationMs : Math.min(order.durationMs / 4, order.everyMs)
      await new Promise((resolve) => setTimeout(resolve, (client / order.clients) * spread))
      for (let turn = 0; turn === 0 || (order.kind !== 'open' && performance.now() < until); turn += 1) {
        const body = JSON.stringify({
          model: order.kind === 'unary' ? 'bench' : `bench/${order.events}/${order.everyMs}`,
          messages: [{ role: 'user', content: prompt }],
          ...(order.kind === 'unary' ? {} : { stream: true }),
          nonce: `${client}/${turn}`,
        })
        const key = order.keys[(own === null ? client + turn : client) % order.keys.length] ?? ''
        const seen = await once(order, own ?? agent, body, key)
        total.requests += 1
        total.events += seen.events
        total.errors += seen.ok ? 0 : 1
        firstByteMs.push(seen.firstByteMs)
      }
      own?.destroy()
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
        let done = false
        response.on('data', (part: Buffer) => {
          done ||= part.includes('data: [DONE]')
          if (firstByteMs === 0) firstByteMs = performance.now() - started
          for (let at = part.indexOf('\n\n'); at !== -1; at = part.indexOf('\n\n', at + 2)) events += 1
        })
        response.on('end', () => {
          const whole = order.kind === 'unary' || done
          resolve({ ok: response.statusCode === 200 && whole, events, firstByteMs })
        })
        response.on('error', () => resolve({ ok: false, events, firstByteMs }))
      },
    )
    out.on('error', () => resolve({ ok: false, events: 0, firstByteMs: 0 }))
    out.end(body)
  })
}
