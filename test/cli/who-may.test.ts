/** Tokens of a running Paddock: which role may call which route, when a token ends, and who is recorded as having done what. */
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createToken, offeredRoles, type Role, routeTable } from '../../src/access/index.ts'
import { runCli } from '../../src/cli/program.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { chat, serve, type Serving } from './here.ts'

let directory: string
let data: string
let serving: Serving
let admin: string
const tokens = new Map<Role, string>()

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  serving = await serve(data)
  admin = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  for (const role of offeredRoles) tokens.set(role, await made(role, `of-${role}`))
  await chat(serving.ready, { messages: [{ role: 'user', content: 'hello' }] })
})
afterAll(async () => {
  await serving?.stop()
})

/** A command of this process: starting one for each would be all that this test does. */
async function paddock(args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const said = { out: '', err: '' }
  const code = await runCli([...args, '--data', data], {
    out: (text) => void (said.out += `${text}\n`),
    err: (text) => void (said.err += `${text}\n`),
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  return { code, ...said }
}

const token = (...args: readonly string[]) => paddock(['token', ...args, '--json'])

async function made(role: Role, name: string): Promise<string> {
  return (await createToken(data, { role, name, days: 1, now: Date.now() })).token
}

/** The head of an answer; the connection is closed behind it, for some routes never end. */
async function ask(method: string, path: string, bearer: string, body?: unknown): Promise<IncomingMessage> {
  const sent = request(`${serving.ready.control}${path}`, {
    method,
    agent: false,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
  })
  sent.on('error', () => undefined)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

async function json(answer: IncomingMessage) {
  let text = ''
  for await (const chunk of answer) text += String(chunk)
  return JSON.parse(text)
}

const rows = routeTable.map(({ route, may }) => {
  const [method = '', path = ''] = route.split(' ')
  const asked = path.replace('/runs/:id/evals/:eval', '/runs/none/evals/none').replaceAll(/:\w+/g, 'none')
  return { route, may, method: method === 'ANY' ? 'GET' : method, path: asked.replace('*', 'stats') }
})

describe('every route', () => {
  it.each(rows)('$route answers those who may, and nobody else', async ({ method, path, may, route }) => {
    const nobody = await ask(method, path, 'x'.repeat(43))
    expect(nobody.statusCode === 401).toBe(may !== 'anyone')
    nobody.destroy()
    for (const role of offeredRoles) {
      const answer = await ask(method, path, tokens.get(role) ?? '', method === 'GET' ? undefined : {})
      if (may === 'anyone' || may.includes(role)) {
        expect([role, answer.statusCode]).not.toEqual([role, 403])
        expect([role, answer.statusCode]).not.toEqual([role, 401])
        answer.destroy()
        continue
      }
      const { error } = await json(answer)
      expect([role, answer.statusCode, error.code]).toEqual([role, 403, 'ROLE_REFUSED'])
      expect(error.message).toContain(`of-${role} has the role ${role}, and ${route} is for ${may.join(', ')}`)
      expect(error.fix).toContain('paddock token create')
    }
  })
})

describe('a token', () => {
  it('is kept as a hash alone, and said once', async () => {
    const text = String(JSON.parse((await token('create', '--role', 'view', '--name', 'hashed')).out).token)
    expect((await ask('GET', '/runs', text)).statusCode).toBe(200)
    const files = await readdir(join(data, 'tokens'))
    expect(files.filter((name) => name.endsWith('.tmp'))).toEqual([])
    for (const name of files) {
      expect(await readFile(join(data, 'tokens', name), 'utf8')).not.toContain(text.slice(-43))
      expect((await stat(join(data, 'tokens', name))).mode & 0o777).toBe(0o600)
    }
    const { out } = await token('list')
    expect(out).not.toContain(text.slice(-43))
    expect(JSON.parse(out).tokens).toContainEqual(expect.objectContaining({ name: 'hashed', state: 'valid' }))
  })

  it.each([
    [['--role', 'owner', '--name', 'x'], 'USAGE', 'owner'],
    [['--role', 'view', '--name', '../x'], 'TOKEN_REFUSED', 'name'],
    [['--role', 'view', '--name', 'control-token'], 'TOKEN_REFUSED', 'name'],
    [['--role', 'view', '--name', 'of-view'], 'TOKEN_REFUSED', 'given before'],
    [['--role', 'view', '--name', 'long', '--days', '99999'], 'USAGE', '3650'],
    [['--role', 'view', '--name', 'short', '--days', '0'], 'USAGE', 'at least 1'],
  ])('cannot be made with %j', async (args, code, what) => {
    const { err, code: exit } = await token('create', ...args)
    expect([exit, err]).toEqual([2, expect.stringContaining(code)])
    expect(err).toContain(what)
  })

  it('opens nothing once its days are over', async () => {
    const text = await made('view', 'over')
    expect((await ask('GET', '/runs', text)).statusCode).toBe(200)
    const file = join(data, 'tokens', 'over.json')
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), endsAt: Date.now() - 1 }))
    expect((await ask('GET', '/runs', text)).statusCode).toBe(401)
  })

  it('opens nothing with another secret, another name, or a damaged file', async () => {
    const [one, other] = [await made('view', 'one'), await made('admin', 'other')]
    expect((await ask('GET', '/runs', one.slice(0, -1))).statusCode).toBe(401)
    expect((await ask('GET', '/runs', one.replace('_one_', '_other_'))).statusCode).toBe(401)
    expect((await ask('GET', '/runs', one.replace('_one_', '_../one_'))).statusCode).toBe(401)
    expect((await ask('GET', '/runs', other)).statusCode).toBe(200)
  })

  it('that is revoked closes what is open under it, and leaves the streams of others', async () => {
    const secret = await made('trainer', 'gone')
    const run = await json(await ask('POST', '/rl/v1/runs', secret, {}))
    const stream = await ask('GET', '/events', secret)
    const others = await ask('GET', '/events', tokens.get('view') ?? '')
    const told = await text(await ask('GET', `/rl/v1/runs/${run.run_id}/events`, secret))
    const { cursor } = JSON.parse(told.trim().split('\n').at(-1) ?? '') as { cursor: string }
    const poll = request(`${serving.ready.control}/rl/v1/runs/${run.run_id}/events?after=${cursor}&wait_s=60`, {
      headers: { authorization: `Bearer ${secret}` },
      agent: false,
    }).end()
    // Each is cut off, which is an error to whoever reads it.
    const ended = [poll, stream].map((open) => new Promise((resolve) => open.on('error', resolve)))
    stream.resume()
    expect((await token('revoke', 'gone')).code).toBe(0)
    expect((await ask('GET', '/runs', secret)).statusCode).toBe(401)
    await Promise.all(ended)
    expect(others.destroyed).toBe(false)
    others.destroy()
    expect((await token('create', '--role', 'view', '--name', 'gone')).err).toContain('given before')
    expect((await token('revoke', 'nobody')).err).toContain('NOT_FOUND')
  })
})

describe('who did it', () => {
  it('is in a late verdict and a label, and shown', async () => {
    const { rolloutId } = serving.ready
    const ann = await made('annotate', 'ann')
    const given = await ask('POST', `/rollouts/${rolloutId}/verdicts`, ann, { source: 'review', reward: 0.25 })
    expect((await json(given)).verdict).toMatchObject({ reward: 0.25, token: 'ann' })
    const labelled = await ask('POST', `/rollouts/${rolloutId}/labels`, ann, { name: 'quality', value: 'good' })
    expect((await json(labelled)).rollout.labels).toMatchObject({ quality: 'good' })
    expect((await ask('POST', `/rollouts/${rolloutId}/labels`, ann, { name: ' ', value: 'good' })).statusCode).toBe(400)
    const { out } = await paddock(['show', rolloutId])
    expect(out).toContain('given under the token ann')
    const shown = JSON.parse((await paddock(['show', rolloutId, '--json'])).out)
    expect(shown.events).toContainEqual(expect.objectContaining({ kind: 'label', name: 'quality', token: 'ann' }))
  })

  it('cannot be said by who asks', async () => {
    const { rolloutId } = serving.ready
    const body = { source: 'review', reward: 1, token: 'somebody' }
    const answer = await ask('POST', `/rollouts/${rolloutId}/verdicts`, tokens.get('annotate') ?? '', body)
    expect((await json(answer)).error.code).toBe('BODY_INVALID_SHAPE')
  })

  it('is recorded of pauses, weights and cancels, also of a rollout', async () => {
    const trainer = tokens.get('trainer') ?? ''
    await json(await ask('POST', '/engine/weights', trainer, { version: 'step-7' }))
    const run = await json(await ask('POST', '/rl/v1/runs', trainer, {}))
    const group = { groups: [{ group_id: 'g-who', task: { name: 't', instruction: 'i' }, n: 1 }] }
    await json(await ask('POST', `/rl/v1/runs/${run.run_id}/groups`, trainer, group))
    const opened = await json(await ask('POST', '/rl/v1/rollouts', trainer, { group_id: 'g-who' }))
    await json(await ask('POST', `/rl/v1/rollouts/${opened.rollout_id}/cancel`, trainer, {}))
    await json(await ask('POST', '/rl/v1/groups/g-who/cancel', admin, {}))
    const acts = JSON.parse((await paddock(['list', 'acts', '--limit', '1000', '--json'])).out).acts
    expect(acts).toContainEqual(
      expect.objectContaining({ token: 'of-trainer', action: 'POST /engine/weights', said: { version: 'step-7' } }),
    )
    expect((await paddock(['show', run.run_id])).out).toMatch(
      /control-token \(admin\): POST \/rl\/v1\/groups\/g-who\/cancel/,
    )
    expect((await paddock(['show', opened.rollout_id])).out).toMatch(/of-trainer \(trainer\): POST .*\/cancel/)
  })
})
