/** The viewer's server, over a store that a proxy recorded: what its pages get, and who may look. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../src/core/index.ts'
import { serveView, type ViewServer } from '../../src/server/index.ts'
import { openReader, type SessionLog, type StoreReader } from '../../src/trajectory/index.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Lab, openLab } from '../lab/lab.ts'

const web = '<!doctype html><title>viewer</title>'

let lab: Lab
let log: SessionLog
let reader: StoreReader
let server: ViewServer
let cookie: string
let webDirectory: string
let recordedRun: string

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

async function ask(
  path: string,
  o: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      `${server.origin}${path}`,
      { method: o.method ?? 'GET', headers: o.headers ?? {} },
      (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk: Buffer) => chunks.push(chunk))
        reply.on('end', () =>
          resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body: Buffer.concat(chunks) }),
        )
      },
    )
    asked.on('error', reject)
    asked.end(o.body)
  })
}

const signIn = (code: string): Promise<Reply> =>
  ask('/view/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  })

async function page(path: string) {
  const { status, body } = await ask(`/view/api${path}`, { headers: { cookie } })
  const value = JSON.parse(body.toString('utf8'))
  expect([status, value.error?.code]).toEqual([200, undefined])
  return value
}

const codeOf = (link: string): string => new URL(link).hash.replace('#code=', '')

async function digestOfStore(directory: string): Promise<string> {
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((file) => file.isFile())
  // A reader of a database in WAL mode may make its shared-memory file anew; nothing recorded stands in it.
  const kept = files.map((file) => join(file.parentPath, file.name)).filter((path) => !path.endsWith('-shm'))
  const parts = await Promise.all(kept.toSorted().map(async (path) => `${path} ${sha256(await readFile(path))}`))
  return parts.join('\n')
}

beforeAll(async () => {
  lab = await openLab()
  await lab.script('Look around.', [{ think: 'First a look.' }, { shell: 'ls' }, { shell: 'pwd' }, { say: 'Seen.' }])
  const rollout = await lab.rollout()
  const speaker = rollout.speaker('chat')
  speaker.user('Look around.')
  for (let turn = 0; turn < 3; turn += 1) {
    const said = await rollout.ask(speaker)
    speaker.take(said, 'given')
    if (turn < 2) speaker.results(said, ['a\u202Eb <script>alert(1)</script>'])
  }
  await rollout.score(0)
  log = await rollout.log()
  await recordRollouts(lab.store, [
    { reward: 1, group: 'a' },
    { reward: 1, group: 'a' },
    { reward: 0, group: 'b' },
    { reward: 'infra_error', group: 'b' },
    { reward: 1, group: 'b', taint: 'engine_died' },
    { reward: null, end: 'infra', group: 'c' },
    { reward: 0.5, end: 'agent_timeout', group: 'c' },
    { reward: null, end: null, group: 'c' },
  ])
  await lab.store.recorder.flush()
  recordedRun = (await lab.store.catalogue.runs(10)).find(({ name }) => name === 'recorded')?.id ?? ''
  webDirectory = tempDir()
  await writeFile(join(webDirectory, 'index.html'), web)
  reader = await openReader(lab.storeDirectory)
  server = await serveView(reader, { port: 0, webDirectory })
  const signedIn = await signIn(codeOf(server.link()))
  cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? ''
})

afterAll(async () => {
  await server?.close()
  await reader?.close()
  await lab?.[Symbol.asyncDispose]()
})

describe('who may look', () => {
  it('changes the code of a link for a cookie once, which scripts and other sites do not see', async () => {
    const code = codeOf(server.link())
    const first = await signIn(code)
    expect(first.status).toBe(204)
    expect(String(first.headers['set-cookie'])).toMatch(
      new RegExp(`^paddock-view-${new URL(server.origin).port}=.+; Path=/; HttpOnly; SameSite=Strict$`),
    )
    const again = await signIn(code)
    expect([again.status, JSON.parse(again.body.toString()).error.code]).toEqual([401, 'CONTROL_TOKEN'])
  })

  it.each([
    ['no cookie', {}],
    ['a cookie of another viewer', { cookie: 'paddock-view-1=x' }],
    ['a wrong cookie', { cookie: 'made below' }],
  ])('answers nothing to %s', async (_what, headers) => {
    const wrong = 'cookie' in headers && headers.cookie === 'made below' ? { cookie: `${cookie}x` } : headers
    for (const path of ['/runs', `/sessions/${log.session.id}`, '/nothing']) {
      const reply = await ask(`/view/api${path}`, { headers: wrong })
      expect([reply.status, reply.body.toString()]).toEqual([401, expect.not.stringContaining('lab')])
    }
  })

  it.each([
    ['another host (DNS rebinding)', { host: 'evil.test' }],
    ['a page of another origin', { origin: 'http://evil.test' }],
    ['a page without an origin', { origin: 'null' }],
  ])('refuses %s, with the right cookie too', async (_what, headers) => {
    for (const [path, method] of [
      ['/view/api/runs', 'GET'],
      ['/view/sign-in', 'POST'],
    ] as const) {
      const reply = await ask(path, { method, headers: { cookie, ...headers } })
      expect([reply.status, JSON.parse(reply.body.toString()).error.code]).toEqual([403, 'ORIGIN_REFUSED'])
    }
  })

  it('lets no code in but its own, and nobody frame it', async () => {
    const { headers } = await ask('/runs/x')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(headers['x-content-type-options']).toBe('nosniff')
  })

  it('serves the page at every address of a page, and no file outside', async () => {
    for (const path of ['/', '/runs/abc?tab=groups', '/sessions/abc'])
      expect((await ask(path)).body.toString()).toBe(web)
    for (const path of ['/assets/../index.html', '/assets/%2e%2e/%2e%2e/package.json', '/assets/nothing.js']) {
      expect((await ask(path)).body.toString()).not.toContain('"name"')
    }
  })
})

describe('pages', () => {
  it('a session shows each call, what is new in its request, and its tokens as the engine sampled them', async () => {
    const session = await page(`/sessions/${log.session.id}`)
    expect(session.calls).toBe(3)
    const { rows } = await page(`/sessions/${log.session.id}/calls`)
    for (const call of log.calls) {
      const { seq } = call.intent
      const line = rows[seq]
      const sampled = log.segments.find((one) => one.id === call.commit?.choices[0]?.segmentId)
      expect(line).toMatchObject({
        seq,
        sampledTokens: sampled?.tokens.length,
        outcome: call.commit?.choices[0]?.finishReason,
      })
      const detail = await page(`/sessions/${log.session.id}/calls/${seq}`)
      expect(detail.messages.map((one: { role: string }) => one.role)).toEqual(
        seq === 0 ? ['system', 'user'] : ['tool'],
      )
      const { body } = await ask(`/view/api/sessions/${log.session.id}/calls/${seq}/tokens`, { headers: { cookie } })
      const length = body.readUInt32LE(0)
      const head = JSON.parse(body.subarray(4, 4 + length).toString('utf8'))
      const ids = Array.from({ length: head.n }, (_, at) => body.readInt32LE(4 + length + 4 * at))
      const logprobs = Array.from({ length: head.n }, (_, at) => body.readFloatLE(4 + length + 4 * head.n + 4 * at))
      expect(ids).toEqual([...(sampled?.tokens ?? [])])
      expect(logprobs).toEqual([...(sampled?.logprobs ?? [])])
      expect([head.trained, head.total]).toEqual([true, ids.length])
    }
  })

  it('tokens come in ranges', async () => {
    const sampled = log.segments.find((one) => one.id === log.calls[0]?.commit?.choices[0]?.segmentId)
    const path = `/view/api/sessions/${log.session.id}/calls/0/tokens?from=2&to=5`
    const { body } = await ask(path, { headers: { cookie } })
    const length = body.readUInt32LE(0)
    expect(JSON.parse(body.subarray(4, 4 + length).toString('utf8'))).toMatchObject({ from: 2, n: 3 })
    expect(body.readInt32LE(4 + length)).toBe(sampled?.tokens[2])
  })

  it('a run counts all and effective rollouts apart, and tells whose fault a failure is', async () => {
    const { tally, failures } = await page(`/runs/${recordedRun}`)
    expect(tally).toMatchObject({ rollouts: 8, running: 1, effective: 4, meanReward: 0.625, meanOfAll: 0.7 })
    const told = failures.map(({ cause, kind, count }: Record<string, unknown>) => [cause, kind, count])
    expect(told.toSorted()).toEqual([
      ['agent_timeout', 'agent', 1],
      ['infra', 'infrastructure', 1],
      ['infra_error', 'verdict', 1],
      ['scored 0', 'verdict', 1],
      ['tainted', 'infrastructure', 1],
    ])
  })

  it('rollouts are filtered, sorted and paged; a facet counts what the other filters let through', async () => {
    const all = await page(`/runs/${recordedRun}/rollouts?sort=reward&order=down&limit=3`)
    expect([all.total, all.next, all.rows.map((row: { reward: number }) => row.reward)]).toEqual([8, 3, [1, 1, 1]])
    const last = await page(`/runs/${recordedRun}/rollouts?sort=reward&order=down&after=6`)
    expect([last.next, last.rows.map((row: { reward: null }) => row.reward)]).toEqual([null, [null, null]])
    const scored = await page(`/runs/${recordedRun}/rollouts?status=scored&end=completed`)
    expect(scored.total).toBe(4)
    expect(scored.facets.end).toEqual({ completed: 4, agent_timeout: 1 })
    expect(scored.facets.status).toEqual({ scored: 4, infra_error: 1 })
    const none = await page(`/runs/${recordedRun}/rollouts?status=none`)
    expect(none.total).toBe(2)
  })

  it('a group tells its spread over effective members', async () => {
    const { rows } = await page(`/runs/${recordedRun}/groups`)
    expect(rows.map((row: Record<string, unknown>) => [row['rollouts'], row['effective'], row['spread']])).toEqual([
      [2, 2, 0],
      [3, 1, null],
      [3, 1, null],
    ])
    const { rows: members } = await page(`/groups/${rows[1].id}`)
    expect(members.map((one: Record<string, unknown>) => one['cause'])).toEqual(['scored 0', 'infra_error', 'tainted'])
  })

  it.each([
    ['/runs/no%20name', 400],
    ['/runs/nothing', 404],
    ['/runs/00000000-0000-7000-8000-000000000000', 404],
    ['/sessions/00000000-0000-7000-8000-000000000000', 404],
    ['/runs/RUN/rollouts?sort=colour', 400],
    ['/runs/RUN/rollouts?limit=100000', 400],
    ['/sessions/SESSION/calls/99', 404],
    ['/sessions/SESSION/calls/-1', 400],
    ['/nothing', 404],
  ])('%s is one clear error', async (path, status) => {
    const real = path.replace('RUN', recordedRun).replace('SESSION', log.session.id)
    const reply = await ask(`/view/api${real}`, { headers: { cookie } })
    const { error } = JSON.parse(reply.body.toString())
    expect([reply.status, error.code]).toEqual([status, expect.not.stringMatching('INTERNAL')])
    expect(error.message.length).toBeGreaterThan(10)
  })
})

it('looking writes nothing', async () => {
  const before = await digestOfStore(lab.storeDirectory)
  for (const { id } of (await page('/runs')).runs) {
    await page(`/runs/${id}`)
    for (const row of (await page(`/runs/${id}/rollouts`)).rows) await page(`/rollouts/${row.id}`)
  }
  await page(`/sessions/${log.session.id}`)
  expect(await digestOfStore(lab.storeDirectory)).toBe(before)
})
