import type { Dispatcher } from 'undici'
import type { EngineLine } from './contract.ts'
import { DispatcherLine } from './dispatcher-line.ts'
import { SocketLine } from './socket-line.ts'

export type { EngineLine, LineBreak, LineExchange, LineSink } from './contract.ts'

/** The connections to the engine at `url`: sockets of our own where it speaks plain HTTP, else undici. */
export function engineLine(
  url: string,
  of: {
    readonly apiKey: string | null
    readonly dispatcher: Dispatcher | null
    readonly connections: number
    /** The engine closed a connection that waited for work. Not told of connections behind TLS or a dispatcher. */
    readonly lost?: () => void
  },
): EngineLine {
  const base = new URL(url)
  const headers = of.apiKey === null ? {} : { authorization: `Bearer ${of.apiKey}` }
  return base.protocol === 'http:' && of.dispatcher === null
    ? new SocketLine(base, headers, of.lost)
    : new DispatcherLine(base, headers, of)
}
