import { createServer, type Server } from 'node:http'
import express, { type RequestHandler } from 'express'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { StoreReader } from '../../trajectory/index.ts'
import { answerFailure } from '../failure.ts'
import { parse } from '../parse.ts'
import { ViewAccess } from './access.ts'
import { type Annotator, annotateRoutes } from './annotate.ts'
import { viewRoutes } from './routes.ts'

/** A running viewer. */
export interface ViewServer {
  /** `http://127.0.0.1:port`. */
  readonly origin: string
  /** A link that signs one browser in, once. */
  link(): string
  /** Idempotent. */
  close(): Promise<void>
}

/**
 * Recorded text is data: nothing of another origin, no inline code or style, and no HTML made from strings
 * (Trusted Types, https://www.w3.org/TR/trusted-types/).
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const headers: RequestHandler = (_request, response, next) => {
  response.set({
    'content-security-policy': contentSecurityPolicy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })
  next()
}

const signInBody = z.union([z.strictObject({ code: z.string() }), z.strictObject({ token: z.string() })])

/**
 * Serves the viewer on loopback: pages from `webDirectory`, data from the reader. Only with an annotator is there anything that
 * writes. Throws `PORT_IN_USE`.
 */
export async function serveView(
  reader: StoreReader,
  o: { readonly port: number; readonly webDirectory: string; readonly annotator?: Annotator },
): Promise<ViewServer> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 60_000, maxHeaderSize: 16_384 })
  const port = await listen(server, o.port)
  const annotator = o.annotator ?? null
  const access = new ViewAccess({
    port,
    tokensOf: annotator === null ? null : reader.directory,
    annotates: annotator !== null,
  })
  const app = express()
  app.disable('x-powered-by')
  app.use(headers)
  app.use('/view', access.ownPage)
  app.post('/view/sign-in', express.json({ limit: '4kb' }), (request, response) => {
    const asked = parse(signInBody, request.body ?? {}, 'body')
    if ('code' in asked) access.signIn(asked.code, response)
    else access.signInWith(asked.token, response)
    response.status(204).end()
  })
  app.use('/view/api', access.signedIn, annotateRoutes(annotator, access), viewRoutes(reader), noSuchPage)
  // Files of the build carry their digest in their name; the page itself is asked for each time.
  app.use(
    '/assets',
    express.static(`${o.webDirectory}/assets`, { immutable: true, maxAge: '1y', index: false }),
    noSuchPage,
  )
  app.use('/icon.svg', express.static(`${o.webDirectory}/icon.svg`))
  app.get('/{*path}', (_request, response) => {
    response.set('cache-control', 'no-store').sendFile('index.html', { root: o.webDirectory })
  })
  app.use(noSuchPage, answerFailure)
  server.on('request', app)
  const origin = `http://127.0.0.1:${port}`
  let closing: Promise<void> | null = null
  return {
    origin,
    link: () => `${origin}/#code=${access.code ?? access.renew()}`,
    close: () => {
      closing ??= new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return closing
    },
  }
}

const noSuchPage: RequestHandler = (request, _response, next) => {
  next(new PaddockError('NOT_FOUND', `the viewer has no ${request.method} ${request.originalUrl}`))
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new PaddockError('PORT_IN_USE', `127.0.0.1:${port} is taken by another process`, { cause: error })
          : error,
      )
    })
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}
