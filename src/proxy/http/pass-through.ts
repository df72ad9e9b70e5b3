import { Agent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { PaddockError } from '../../core/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import { reason } from '../engines/http.ts'
import { isCredential } from '../session/keys.ts'
import { createProxyServer } from './http-proxy.ts'

/** Passes listed read-only requests to the engine as they are, without the client's credentials. */
export interface PassThrough {
  /** `onError` is told when the engine gave no head; after that the client's connection is cut. */
  serve(request: IncomingMessage, response: ServerResponse, path: string, onError: (error: PaddockError) => void): void
  close(): void
}

/**
 * To the engine that `now` gives: http-proxy with a keep-alive agent and two hooks that it lacks: a client that goes away cancels the engine's work,
 * and an engine that dies mid-answer resets the client instead of leaving it hanging.
 */
export function passThrough(now: () => EngineAdapter): PassThrough {
  const agent = new Agent({ keepAlive: true })
  const tlsAgent = new TlsAgent({ keepAlive: true })
  const proxy = createProxyServer({ changeOrigin: true, xfwd: false })
  const failures = new WeakMap<ServerResponse, (error: PaddockError) => void>()
  proxy.on('proxyReq', (upstream, _request, response) => {
    for (const name of upstream.getHeaderNames()) if (isCredential(name)) upstream.removeHeader(name)
    const { apiKey } = now()
    if (apiKey !== null) upstream.setHeader('authorization', `Bearer ${apiKey}`)
    response.once('close', () => {
      if (!response.writableFinished) upstream.destroy()
    })
    upstream.once('upgrade', () => {
      refuse(response)
      upstream.destroy()
    })
  })
  const refuse = (response: ServerResponse) =>
    failures.get(response)?.(new PaddockError('ENGINE_ERROR', 'The engine changed the protocol unasked.'))
  proxy.on('proxyRes', (upstream, _request, response) => {
    // Without the headers of an upgrade it looks like an answer.
    if (upstream.statusCode === 101) refuse(response)
    upstream.once('aborted', () => response.destroy())
    upstream.once('error', () => response.destroy())
  })
  proxy.on('error', (cause, _request, response) => {
    if (!('writeHead' in response) || response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const error = new PaddockError('ENGINE_UNREACHABLE', `The engine cannot be reached: ${reason(cause)}.`, { cause })
    failures.get(response)?.(error)
  })
  return {
    serve(request, response, path, onError) {
      failures.set(response, onError)
      request.url = path
      const { url } = now()
      proxy.web(request, response, { target: url, agent: url.startsWith('https:') ? tlsAgent : agent })
    },
    close() {
      agent.destroy()
      tlsAgent.destroy()
      proxy.close()
    },
  }
}
