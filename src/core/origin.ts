import { isIPv6 } from 'node:net'

/** The origin under which a listener is reached from its own machine. What listens on every address is told as loopback. */
export function originOf(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`
  if (host === '::') return `http://[::1]:${port}`
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`
}
