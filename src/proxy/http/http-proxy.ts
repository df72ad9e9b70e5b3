import { createRequire } from 'node:module'
import util from 'node:util'
import type HttpProxy from 'http-proxy'

/**
 * http-proxy 1.18.1, loaded without its deprecation warning (DEP0060) on every terminal: it takes `util._extend` once,
 * while it loads, and gets `Object.assign` there, which is what Node's documentation names as the replacement.
 */
export const createProxyServer: typeof HttpProxy.createProxyServer = load()

function load(): typeof HttpProxy.createProxyServer {
  const holder: object = util
  const deprecated = Object.getOwnPropertyDescriptor(holder, '_extend')
  Object.defineProperty(holder, '_extend', { value: Object.assign, configurable: true, writable: true })
  try {
    const loaded: typeof HttpProxy = createRequire(import.meta.url)('http-proxy')
    return loaded.createProxyServer.bind(loaded)
  } finally {
    if (deprecated !== undefined) Object.defineProperty(holder, '_extend', deprecated)
  }
}
