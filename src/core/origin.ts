import { isIPv6 } from 'node:net'

/** The origin under which a listener is reached from its own machine. What listens on every address is told as loopback. */
export function originOf(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  if (host === '0.0.0.0') return `${scheme}://127.0.0.1:${port}`
  if (host === '::') return `${scheme}://[::1]:${port}`
  return `${scheme}://${isIPv6(host) ? `[${host}]` : host}:${port}`
}

/** True for hosts that only this machine reaches; of a URL too, where an IPv6 address stands in brackets. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}
