/** No reply of the viewer is large, whatever was recorded: every route is asked, over a store that is large in each way that a list or a text can be. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { serveView, type ViewServer } from '../../src/server/index.ts'
import { viewRoutes } from '../../src/server/view/routes.ts'
import { recordRollouts } from '../../src/testing/exporter/recorded.ts'
import { openReader, openStore, type StoreReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const mostBytes = 512 * 1024
const members = 600
const turns = 800
const events = 60
/** Each character takes six bytes of a reply. */
const longText = '\u0001'.repeat(200_000)
const many = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at))

let directory: string
let reader: StoreReader
let server: ViewServer
let cookie: string
/** What stands for the parameters of a route. */
let names: Readonly<Record<string, string>>

beforeAll(async () => {
  directory = tempDir()
  const store = await openStore(join(directory, 'data'))
  const { catalogue, recorder } = store
  const [long = ''] = await recordRollouts(store, [
    { reward: 1, turns, question: (seq) => (seq < turns - 3 ? `turn ${seq}` : longText) },
  ])
  const view = await catalogue.rollout(long)
  const [verdict] = view.verdicts
  if (verdict === undefined) throw new Error('no verdict')
  const components = Object.fromEntries(many(3000, (at) => [`part ${at}`, at]))
  for (let at = 0; at < members; at += 1) {
    const id = newId()
    const { runId, groupId, harness } = view
    await catalogue.putRollout({ id, runId, groupId, slot: at + 1, attempt: 0, harness, createdAt: 1 })
    await catalogue.endRollout(id, 3, 'completed', '')
    const evidence = at === 0 ? longText : ''
    await catalogue.appendVerdict({
      ...verdict,
      id: newId(),
      rolloutId: id,
      evidence,
      components: at < 3 ? components : {},
    })
  }
  for (const name of many(400, (at) => `label-${at}`)) await catalogue.label(long, name, longText.slice(0, 2000))
  for (let at = 0; at < 12; at += 1) {
    await catalogue.appendVerdict({ ...verdict, id: newId(), rolloutId: long, evidence: longText, components })
  }
  const event = { at: 20, rolloutId: long, sessionId: null, callId: null }
  for (let at = 0; at < events; at += 1) {
    await recorder.appendEvent({
      ...event,
      id: newId(),
      kind: 'exec',
      role: 'agent',
      command: longText.slice(0, 9000),
      outcome: 'exited',
      exitCode: 0,
      signal: null,
      durationMs: 1,
      stdout: longText.slice(0, 9000),
      stderr: longText.slice(0, 9000),
      truncatedBytes: 0,
    })
  }
  const large = newId()
  await catalogue.putRun({
    id: large,
    name: 'large',
    createdAt: 1,
    config: { notes: many(2000, (at) => longText.slice(0, 900 + at)), wide: components },
  })
  const [session] = await recorder.sessions({ rolloutId: long })
  await store.close()
  await writeFile(join(directory, 'index.html'), '<!doctype html><title>viewer</title>')
  reader = await openReader(join(directory, 'data'))
  server = await serveView(reader, { port: 0, webDirectory: directory })
  const signedIn = await fetch(`${server.origin}/view/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: new URL(server.link()).hash.replace('#code=', '') }),
  })
  cookie = String(signedIn.headers.get('set-cookie')).split(';')[0] ?? ''
  names = {
    run: view.runId,
    large,
    group: view.groupId,
    rollout: long,
    session: session?.id ?? '',
    task: view.taskDigest,
    other: (await reader.catalogue.rollouts({ groupId: view.groupId }))[1]?.id ?? '',
  }
})

afterAll(async () => {
  await server?.close()
  await reader?.close()
})

/** How each route is asked; a new route has none until somebody writes it down. */
const asked: Readonly<Record<string, readonly string[]>> = {
  '/runs': ['/runs'],
  '/runs/:id': ['/runs/{run}', '/runs/{large}'],
  '/runs/:id/rollouts': ['/runs/{run}/rollouts?limit=500'],
  '/runs/:id/pulse': ['/runs/{run}/pulse'],
  '/rollouts/:id/pulse': ['/rollouts/{rollout}/pulse'],
  '/runs/:id/groups': ['/runs/{run}/groups?limit=500'],
  '/runs/:id/curves': ['/runs/{run}/curves'],
  '/runs/:id/nulls': ['/runs/{run}/nulls?limit=500'],
  '/runs/:id/tasks': ['/runs/{run}/tasks?limit=500'],
  '/search': ['/search?q=turn'],
  '/tasks/:digest': ['/tasks/{task}'],
  '/compare/rollouts': ['/compare/rollouts?a={rollout}&b={other}'],
  '/compare/runs': ['/compare/runs?a={run}&b={large}'],
  '/groups/:id': ['/groups/{group}?limit=500'],
  '/rollouts/:id': ['/rollouts/{rollout}'],
  '/rollouts/:id/tree': ['/rollouts/{rollout}/tree?limit=500'],
  '/rollouts/:id/family': ['/rollouts/{rollout}/family'],
  '/rollouts/:id/timeline': ['/rollouts/{rollout}/timeline?limit=500'],
  '/rollouts/:id/terminal': ['/rollouts/{rollout}/terminal?limit=500'],
  '/rollouts/:id/pictures': ['/rollouts/{rollout}/pictures?limit=500'],
  '/rollouts/:id/training': ['/rollouts/{rollout}/training'],
  '/sessions/:id': ['/sessions/{session}'],
  '/sessions/:id/calls': ['/sessions/{session}/calls?limit=500'],
  '/sessions/:id/calls/:seq': [0, turns - 3, turns - 1].map((seq) => `/sessions/{session}/calls/${seq}`),
  '/sessions/:id/calls/:seq/tokens': ['/sessions/{session}/calls/0/tokens'],
}

interface Reply {
  readonly bytes: number
  readonly value: Record<string, unknown> & {
    readonly next?: number | null
    readonly rows?: readonly Record<string, unknown>[]
  }
}

async function ask(path: string): Promise<Reply> {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? '')
  const reply = await fetch(`${server.origin}/view/api${address}`, { headers: { cookie } })
  const body = Buffer.from(await reply.arrayBuffer())
  expect([address, reply.status]).toEqual([address, 200])
  const isJson = reply.headers.get('content-type')?.startsWith('application/json') === true
  return { bytes: body.length, value: isJson ? JSON.parse(body.toString()) : {} }
}

it('every route answers with at most 512 kB', async () => {
  const routes = viewRoutes(reader).stack.flatMap(({ route }) => (route === undefined ? [] : [route.path]))
  // A picture is sent as it was recorded.
  expect(Object.keys(asked).toSorted()).toEqual(routes.filter((path) => path !== '/blobs/:sha256').toSorted())
  const sizes = []
  for (const path of Object.values(asked).flat()) sizes.push([path, (await ask(path)).bytes] as const)
  expect(sizes.filter(([, bytes]) => bytes > mostBytes)).toEqual([])
})

it('what does not fit says so, and what fits is whole', async () => {
  const shortened = async (path: string) => (await ask(path)).value['shortened'] ?? false
  expect(await shortened('/runs/{large}')).toBe(true)
  expect(await shortened('/rollouts/{rollout}')).toBe(true)
  expect(await shortened('/runs/{run}')).toBe(false)
  expect(await shortened('/sessions/{session}/calls?limit=500')).toBe(false)
})

it('parts of a list hang together without a gap, however little of it fits', async () => {
  const lists = [
    ['/sessions/{session}/calls', 'rows', (line: Record<string, unknown>) => line['seq'], turns],
    ['/groups/{group}', 'rows', (line: Record<string, unknown>) => line['slot'], members + 1],
    ['/rollouts/{rollout}/tree', 'rows', (line: Record<string, unknown>) => line['seq'], turns],
    ['/rollouts/{rollout}/timeline', 'lines', (line: Record<string, unknown>) => line['n'], events],
    ['/rollouts/{rollout}/terminal', 'rows', (line: Record<string, unknown>) => line['n'], events],
  ] as const
  for (const [path, field, nameOf, count] of lists) {
    const seen: unknown[] = []
    for (let after: number | null = 0; after !== null;) {
      const { value } = await ask(`${path}?limit=500&after=${after}`)
      seen.push(...(value[field] as readonly Record<string, unknown>[]).map(nameOf))
      after = value.next ?? null
    }
    expect([path, seen]).toEqual([path, many(count, (at) => at)])
  }
})

it('a call is found in the list by its number', async () => {
  expect((await ask('/sessions/{session}/calls?limit=1&at=700')).value['at']).toBe(700)
  expect((await ask('/sessions/{session}/calls?limit=1&at=99999')).value['at']).toBe(0)
})
