import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Box, ModelSocket } from '../../sandbox/index.ts'
import { type SharedBoxParts, text } from './parts.ts'

/** The part of the sandbox contract about the one way from a box to its socket. */
export function modelPathContract(parts: SharedBoxParts): void {
  const { sh } = parts
  let box: Box
  let socket: ModelSocket
  beforeAll(() => {
    box = parts.box()
    socket = parts.socket()
  })

  describe('the model path', () => {
    it('carries requests and answers of any size', async () => {
      socket.serve({
        request: (request, response) => {
          const hash = createHash('sha256')
          request.on('data', (chunk: Buffer) => hash.update(chunk))
          request.on('end', () => response.end(`${request.url} ${hash.digest('hex')}`))
        },
      })
      const result = await sh(
        `head -c 5000000 /dev/zero > body; sha256sum < body; curl -sS --data-binary @body $URL/v1/x`,
        {
          env: { URL: box.modelUrl ?? '' },
        },
      )
      const [sum, answer] = text(result.stdout).split('  -\n')
      expect(answer).toBe(`/v1/x ${sum}`)
    })

    it('streams: a piece arrives before the next one is written', async () => {
      const seen = Promise.withResolvers<void>()
      socket.serve({
        request: (_request, response) => {
          response.write('first\n')
          void seen.promise.then(() => response.end('second\n'))
        },
      })
      const result = await sh(`curl -sSN ${box.modelUrl}/`, { onStdout: () => seen.resolve() })
      expect(text(result.stdout)).toBe('first\nsecond\n')
    })

    it('passes a half-closed connection and an abort on', async () => {
      socket.serve({ request: (request, response) => void request.resume().on('end', () => response.end('done')) })
      const port = new URL(box.modelUrl ?? '').port
      const half = await sh(`printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -N 127.0.0.1 ${port}`)
      expect(text(half.stdout)).toContain('done')
      const asked = Promise.withResolvers<Uint8Array>()
      const aborted = Promise.withResolvers<void>()
      socket.serve({
        request: (_request, response) => {
          response.on('close', () => aborted.resolve())
          asked.resolve(Buffer.from('asked\n'))
        },
      })
      await sh(`curl -sS ${box.modelUrl}/ & read -r; kill $!; wait`, {
        stdin: (async function* () {
          yield await asked.promise
        })(),
      })
      await aborted.promise
    })

    it('serves nothing unless something is bound, and no CONNECT unless that is served too', async () => {
      socket.unbind()
      expect(text((await sh(`curl -sS -o /dev/null -w '%{http_code}' ${box.modelUrl}/`)).stdout)).toBe('503')
      const tunnel = `curl -sS -o /dev/null -w '%{http_connect}' -p -x ${box.modelUrl} http://198.51.100.1/`
      expect(text((await sh(tunnel)).stdout)).toBe('403')
      socket.serve({
        request: (_request, response) => void response.end(),
        connect: (request, socket) => void socket.end(`HTTP/1.1 418 ${request.url?.replace(':80', '')}\r\n\r\n`),
      })
      expect(text((await sh(tunnel)).stdout)).toBe('418')
    })
  })
}
