/** Who may write in the viewer: forged pages, other sites, stolen and ended tokens; over a store of its own and through an owner. */
import { writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openForAnnotating, type Annotating } from '../../src/cli/annotating.ts'
import { openContext } from '../../src/cli/cli.ts'
import type { Io } from '../../src/cli/io.ts'
import { serveView, type ViewServer } from '../../src/server/index.ts'
import { createToken, revokeToken, type Role } from '../../src/access/index.ts'
import { openReader, openStore, type StoreReader } from '../../src/trajectory/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type SharedServe, useServe } from '../fixtures/use-serve.ts'

const own = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', 'x-paddock-annotate': '1' }

let directory: string
let data: string
let webDirectory: string
let rolloutId: string
let writing: Annotating
let server: ViewServer
let byLink: string

interface Reply {
  readonly status: number
  readonly cookie: string
  readonly body: string
}

function ask(
  path: string,
  o: { method?: string; headers?: Record<string, string>; body?: unknown; at?: ViewServer } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { method = 'POST', headers = {} } = o
    const asked = httpRequest(`${(o.at ?? server).origin}${path}`, { method, headers }, (reply) => {
      let body = ''
      reply.on('data', (chunk: Buffer) => (body += chunk.toString()))
      const [cookie = ''] = String(reply.headers['set-cookie']).split(';')
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, cookie, body }))
    })
    asked.on('error', reject)
    asked.end(o.body === undefined ? undefined : JSON.stringify(o.body))
  })
}

const codeOf = (reply: Reply): unknown => (reply.body === '' ? null : JSON.parse(reply.body).error?.code)
const verdict = (headers: Record<string, string>, body: unknown = { source: 'review', reward: 0.5 }, at = server) =>
  ask(`/view/api/rollouts/${rolloutId}/verdicts`, { headers, body, at })

async function signIn(body: unknown, at = server): Promise<Reply> {
  return ask('/view/sign-in', { headers: { 'content-type': 'application/json' }, body, at })
}

async function made(role: Role, name: string): Promise<string> {
  return (await createToken(data, { role, name, days: 1, now: Date.now() })).token
}

async function contextOf(directoryOfData: string) {
  const io: Io = {
    out: () => undefined,
    err: () => undefined,
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  }
  return openContext(io, { data: directoryOfData, config: false, json: true }, {})
}

const verdicts = async (reader: StoreReader) => (await reader.catalogue.rollout(rolloutId)).verdicts

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  webDirectory = join(directory)
  await writeFile(join(webDirectory, 'index.html'), '<!doctype html>')
  const store = await openStore(data)
  rolloutId = (await recordRollouts(store, [{ reward: 0 }]))[0] ?? ''
  await store.close()
  writing = await openForAnnotating(await contextOf(data))
  server = await serveView(writing.reader, { port: 0, webDirectory, annotator: writing.annotator })
  byLink = (await signIn({ code: new URL(server.link()).hash.replace('#code=', '') })).cookie
})
afterAll(async () => {
  await server?.close()
  await writing?.[Symbol.asyncDispose]()
})

describe('a viewer that annotates', () => {
  it('owns the closed store, and takes verdicts and labels of the link under the name of the machine', async () => {
    await expect(openStore(data)).rejects.toMatchObject({ code: 'STORE_LOCKED' })
    const given = await verdict({ ...own, cookie: byLink }, { source: 'review', reward: 0.5, evidence: 'read it' })
    expect([given.status, JSON.parse(given.body).verdict]).toEqual([
      201,
      expect.objectContaining({ reward: 0.5, evidence: 'read it', token: 'control-token' }),
    ])
    const body = { name: 'quality', value: 'good' }
    const labelled = await ask(`/view/api/rollouts/${rolloutId}/labels`, { headers: { ...own, cookie: byLink }, body })
    expect(labelled.status).toBe(201)
    expect((await writing.reader.catalogue.rollout(rolloutId)).labels).toMatchObject({ quality: 'good' })
    expect(await writing.reader.recorder.events({ rolloutId })).toContainEqual(
      expect.objectContaining({ kind: 'label', name: 'quality', token: 'control-token' }),
    )
  })

  it.each([
    ['a form of another page', { 'content-type': 'text/plain', 'sec-fetch-site': 'cross-site' }],
    ['a page of another site', { ...own, 'sec-fetch-site': 'cross-site' }],
    ['a page of the same site on another port', { ...own, 'sec-fetch-site': 'same-site' }],
    ['an address that was typed', { ...own, 'sec-fetch-site': 'none' }],
    ['a browser that says no site', { 'content-type': 'application/json', 'x-paddock-annotate': '1' }],
    ['a form of its own page', { 'content-type': 'text/plain', 'sec-fetch-site': 'same-origin' }],
    ['another origin', { ...own, origin: 'http://evil.test' }],
    ['another port of this machine', { ...own, origin: 'http://127.0.0.1:1' }],
    ['a name that leads here (DNS rebinding)', { ...own, host: 'evil.test' }],
  ])('takes nothing from %s, with the right cookie too', async (_what, headers) => {
    const before = (await verdicts(writing.reader)).length
    const reply = await verdict({ ...headers, cookie: byLink })
    expect([reply.status, codeOf(reply)]).toEqual([403, 'ORIGIN_REFUSED'])
    expect(await verdicts(writing.reader)).toHaveLength(before)
  })

  it('takes nothing without a cookie, with a wrong one, or by another method', async () => {
    for (const cookie of ['', `${byLink}x`, byLink.replace(/-\d+=/, '-1=')]) {
      const reply = await verdict({ ...own, cookie })
      expect([reply.status, codeOf(reply)]).toEqual([401, 'CONTROL_TOKEN'])
    }
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const path = `/view/api/rollouts/${rolloutId}/verdicts`
      expect((await ask(path, { method, headers: { ...own, cookie: byLink } })).status).toBe(404)
    }
  })

  it('lets each person in by a token, and records its name', async () => {
    const { status, cookie } = await signIn({ token: await made('annotate', 'ann') })
    expect(status).toBe(204)
    const given = await verdict({ ...own, cookie })
    expect([given.status, JSON.parse(given.body).verdict.token]).toEqual([201, 'ann'])
    const state = await ask('/view/api/annotate', { method: 'GET', headers: { cookie } })
    expect(JSON.parse(state.body)).toEqual({ on: true, may: true, name: 'ann' })
  })

  it('lets a token of role view look, and not write', async () => {
    const { cookie } = await signIn({ token: await made('view', 'looker') })
    expect((await ask('/view/api/runs', { method: 'GET', headers: { cookie } })).status).toBe(200)
    const reply = await verdict({ ...own, cookie })
    expect([reply.status, codeOf(reply)]).toEqual([403, 'ROLE_REFUSED'])
  })

  it('forgets a browser whose token is revoked, and knows no other token', async () => {
    const { cookie } = await signIn({ token: await made('annotate', 'bob') })
    expect((await verdict({ ...own, cookie })).status).toBe(201)
    await revokeToken(data, 'bob', Date.now())
    for (const reply of [await verdict({ ...own, cookie }), await signIn({ token: 'pdk_ann_' + 'x'.repeat(43) })]) {
      expect([reply.status, codeOf(reply)]).toEqual([401, 'CONTROL_TOKEN'])
    }
  })

  it.each([
    [{ source: 'review', reward: 0.5, token: 'somebody' }, 'BODY_INVALID_SHAPE'],
    [{ source: '<b>', reward: 0.5 }, 'BODY_INVALID_SHAPE'],
    [{ source: 'review', reward: null }, 'VERDICT_REFUSED'],
  ])('refuses %j', async (body, code) => {
    const reply = await verdict({ ...own, cookie: byLink }, body)
    expect(codeOf(reply)).toBe(code)
  })
})

describe('a viewer that only looks', () => {
  it('has nothing that writes, and takes no token', async () => {
    const reader = await openReader(data)
    const looking = await serveView(reader, { port: 0, webDirectory })
    try {
      const { cookie } = await signIn({ code: new URL(looking.link()).hash.replace('#code=', '') }, looking)
      for (const what of ['verdicts', 'labels']) {
        const path = `/view/api/rollouts/${rolloutId}/${what}`
        expect((await ask(path, { headers: { ...own, cookie }, body: {}, at: looking })).status).toBe(404)
      }
      const state = await ask('/view/api/annotate', { method: 'GET', headers: { cookie }, at: looking })
      expect(JSON.parse(state.body)).toMatchObject({ on: false, may: false })
      expect((await signIn({ token: await made('annotate', 'cat') }, looking)).status).toBe(401)
    } finally {
      await looking.close()
      await reader.close()
    }
  })
})

describe('beside an owner', () => {
  let serving: SharedServe
  beforeAll(async () => {
    serving = await useServe()
  })

  it('writes through it, under the token of whoever writes', async () => {
    const through = await openForAnnotating(await contextOf(serving.data))
    const viewer = await serveView(through.reader, { port: 0, webDirectory, annotator: through.annotator })
    try {
      const path = `/view/api/rollouts/${serving.ready.rolloutId}/verdicts`
      const { token } = await createToken(serving.data, { role: 'annotate', name: 'dan', days: 1, now: Date.now() })
      const link = await signIn({ code: new URL(viewer.link()).hash.replace('#code=', '') }, viewer)
      const person = await signIn({ token }, viewer)
      for (const [{ cookie }, name] of [
        [link, 'control-token'],
        [person, 'dan'],
      ] as const) {
        const body = { source: 'review', reward: 1 }
        const reply = await ask(path, { headers: { ...own, cookie }, body, at: viewer })
        expect([reply.status, JSON.parse(reply.body).verdict?.token]).toEqual([201, name])
      }
      const bad = await ask(path, {
        headers: { ...own, cookie: link.cookie },
        body: { source: 'review', reward: null },
        at: viewer,
      })
      expect(codeOf(bad)).toBe('VERDICT_REFUSED')
    } finally {
      await viewer.close()
      await through[Symbol.asyncDispose]()
    }
  })
})
