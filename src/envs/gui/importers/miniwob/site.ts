import { randomBytes } from 'node:crypto'
import { readFile, realpath } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { z } from 'zod'
import { type gui, PaddockError } from '../../../../kits/environment.ts'
import type { MiniwobData } from './data.ts'
import { episodePath, wireScript } from './wire.ts'

const host = 'miniwob.test'

/** An episode as the host knows it. Times are the host's own. */
export const episodeSchema = z.object({
  /** What the page asked for; null: it did not start. */
  utterance: z.string().nullable(),
  /** Longest time that the page gives, in milliseconds. */
  limitMs: z.number().nullable(),
  end: z
    .object({
      /** As the task's page gives it, from -1 to 1. */
      raw: z.number(),
      /** Whether the page asks that it shrinks with time. */
      scaled: z.boolean(),
      reason: z.string().nullable(),
      elapsedMs: z.number(),
    })
    .nullable(),
})
export type Episode = z.infer<typeof episodeSchema>

const told = z.discriminatedUnion('what', [
  z.object({ what: z.literal('start'), utterance: z.string(), milliseconds: z.number() }),
  z.object({
    what: z.literal('end'),
    raw: z.number().min(-1).max(1),
    scaled: z.boolean(),
    reason: z.string().nullable(),
    stack: z.string(),
  }),
])

/** A page of MiniWoB++ as one attempt is served it. */
export interface MiniwobSite extends gui.TaskSite {
  /** Resolves when the page has started its episode; rejects with `ENVIRONMENT_TOOL_FAILED` after `withinMs`. */
  started(withinMs: number): Promise<void>
  state(): Episode
}

/**
 * Serves the files of a checkout, and is told of the episode by what it puts behind `core.js`. Only the first start and the
 * first end count, and only under the attempt's key; an end whose stack has code of no file in it is forged. The page of
 * the task is given out once: who leaves it or loads it again has ended the episode with nothing.
 */
export function miniwobSite(html: string, data: MiniwobData, now = () => performance.now()): MiniwobSite {
  const key = randomBytes(16).toString('hex')
  const nonce = randomBytes(16).toString('hex')
  const path = `/${data.page}`
  const begun = Promise.withResolvers<void>()
  begun.promise.catch(() => undefined)
  let episode: Episode = { utterance: null, limitMs: null, end: null }
  let startedAt = 0
  let forged = 0
  const given = { page: false, core: false }

  const take = ({ headers, body }: gui.SiteRequest): gui.SiteResponse => {
    const facts = told.safeParse(parsed(body.toString('utf8'))).data
    const key_ = Object.entries(headers).find(([name]) => name.toLowerCase() === 'x-episode')?.[1]
    if (facts === undefined || key_ !== key) {
      forged += 1
      return { status: 403 }
    }
    if (facts.what === 'start' && episode.utterance === null) {
      startedAt = now()
      episode = { ...episode, utterance: facts.utterance.slice(0, 4000), limitMs: facts.milliseconds }
      begun.resolve()
    }
    if (facts.what === 'end' && episode.utterance !== null && episode.end === null) {
      // A frame of a script without a file is `<anonymous>:1:2`; built-in functions have no line.
      if (/<anonymous>:\d|javascript:|chrome-extension:/.test(facts.stack)) forged += 1
      else end(facts)
    }
    return { status: 204 }
  }
  const end = ({ raw, scaled, reason }: Pick<NonNullable<Episode['end']>, 'raw' | 'scaled' | 'reason'>) => {
    episode = { ...episode, end: { raw, scaled, reason, elapsedMs: Math.round(now() - startedAt) } }
  }

  return {
    start: `http://${host}${path}`,
    serve: async (request) => {
      const { url, method } = request
      if (url.host !== host) return null
      if (method === 'POST' && url.pathname === episodePath) return take(request)
      if (method !== 'GET') return { status: 405 }
      if (url.pathname === path) {
        if (given.page) {
          if (episode.end === null) end({ raw: 0, scaled: false, reason: 'the page was left' })
          return said(410, 'The episode is over: its page was left.')
        }
        given.page = true
      }
      const found = await fileBelow(html, url.pathname)
      if (found === null) return said(404, 'There is no such file.')
      const type = types[extname(url.pathname).toLowerCase()] ?? 'application/octet-stream'
      const headers = { 'content-type': type, 'cache-control': 'no-store' }
      if (url.pathname === '/core/core.js' && !given.core) {
        given.core = true
        return { status: 200, headers, body: found.toString('utf8') + wireScript({ key, ...data }) }
      }
      if (type !== htmlType) return { status: 200, headers, body: found }
      const open = url.pathname.startsWith('/flight/')
      return {
        status: 200,
        headers: { ...headers, 'content-security-policy': policyFor(open ? null : nonce) },
        body: open ? found : found.toString('utf8').replaceAll(/<script\b/gi, `<script nonce="${nonce}"`),
      }
    },
    state: () => episode,
    get forged() {
      return forged
    },
    started: async (withinMs) => {
      const timer = setTimeout(() => {
        begun.reject(
          new PaddockError('ENVIRONMENT_TOOL_FAILED', `The page ${data.page} did not start within ${withinMs} ms`),
        )
      }, withinMs)
      await begun.promise.finally(() => clearTimeout(timer))
    },
  }
}

const htmlType = 'text/html; charset=utf-8'
const types: Readonly<Record<string, string>> = {
  '.html': htmlType,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.gif': 'image/gif',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.svg': 'image/svg+xml',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
}

/**
 * With a nonce only the scripts that stand in the file run: none that came in through a field, and no `javascript:`
 * address. The flights are copies of whole web sites, with handlers in their markup; theirs cannot be so strict.
 */
function policyFor(nonce: string | null): string {
  return [
    "default-src 'none'",
    nonce === null ? "script-src 'self' 'unsafe-inline' 'unsafe-eval'" : `script-src 'nonce-${nonce}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "frame-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
  ].join('; ')
}

/** A file of the checkout; null for what is not there or leads out of it. */
async function fileBelow(html: string, pathname: string): Promise<Buffer | null> {
  try {
    const path = await realpath(join(html, decodeURIComponent(pathname)))
    const root = await realpath(html)
    return path.startsWith(root + sep) ? await readFile(path) : null
  } catch {
    return null
  }
}

function said(status: number, text: string): gui.SiteResponse {
  return { status, headers: { 'content-type': htmlType }, body: `<!doctype html><p>${text}</p>` }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
