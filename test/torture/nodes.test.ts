/** A coordinator and nodes as processes of their own: what they come to together, and what becomes of the jobs of nodes that are killed or frozen. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, it } from 'vitest'
import { openReader } from '../../src/trajectory/index.ts'
import { startEngine } from '../proxy/support.ts'
import { paddock } from '../cli/paddock.ts'
import { coordinator, node, rollouts, Running, started, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
const task = join(tasks, 'log-forensics')
const directory = tempDir()

afterEach(stopped)

/** What was trained on in a run, without what is of one time and place: ids, times, names. */
async function rows(data: string, name: string): Promise<readonly string[]> {
  const out = join(directory, `out-${name}`)
  const exported = await paddock(['export', '--format', 'jsonl', '--out', out, '--data', data])
  expect([exported.code, exported.err]).toEqual([0, expect.anything()])
  return (await readFile(join(out, 'rows.jsonl'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => {
      const { token_ids, loss_mask, logprobs, reward, policy_spans } = JSON.parse(line)
      expect(token_ids.length).toBeGreaterThan(100)
      return JSON.stringify({ token_ids, loss_mask, logprobs, reward, policy_spans })
    })
    .toSorted()
}

const seeded = 'export default { session: { pin: { seed: 7 } } }\n'

it('two nodes come to the rows of one machine, verdicts included, and say who ran what', async () => {
  const here = await coordinator(directory, 'pair', seeded)
  await Promise.all([node(here, 'left', 2), node(here, 'right', 2)])
  const asked = ['run', tasks, '--task', 'log-forensics', '--n', '4', '--json']
  const run = await paddock([...asked, '--data', here.data, '--config', join(directory, 'pair.config.mjs')])
  expect([run.code, run.err]).toEqual([0, ''])
  const { summary } = JSON.parse(run.out)
  expect(summary.groups.map(({ settled }: { settled: { usable: number } }) => settled.usable)).toEqual([4])

  const ran = await rollouts(here.data)
  expect(ran).toHaveLength(4)
  expect(new Set(ran.map(({ labels }) => labels['node']))).toEqual(new Set(['left', 'right']))
  expect((await paddock(['list', 'rollouts', '--data', here.data])).out).toMatch(/node[\s\S]*left/)

  const alone = await paddock([
    ...asked,
    '--data',
    join(directory, 'alone'),
    '--config',
    join(directory, 'pair.config.mjs'),
  ])
  expect(alone.code).toBe(0)
  const [together, single] = [await rows(here.data, 'pair'), await rows(join(directory, 'alone'), 'alone')]
  expect(together.length).toBeGreaterThan(0)
  expect(together).toEqual(single)

  await stopped()
  expect((await paddock(['fsck', '--data', here.data])).out).toContain('no problems')
})

it('a run that stops for its missing numbers gives nodes no more jobs, and waits for those that they have', async () => {
  const here = await coordinator(directory, 'nulls')
  await node(here, 'worker', 2)
  // The first agent waits for its gate. Nothing is verified without a box, so no rollout has a number.
  const [first, gate] = [join(directory, 'first'), join(directory, 'opened')]
  const command = `mkdir '${first}' 2>/dev/null && until [ -e '${gate}' ]; do sleep 0.1; done; true`
  const asked = ['run', task, '--n', '40', '--harness', 'script', '--command', command, '--max-null-share', '0.5']
  const run = paddock([...asked, '--data', here.data])
  const wasOpen = run.then(() => existsSync(gate))
  const ended = async () => (await rollouts(here.data)).filter(({ end }) => end !== null).length
  await expect.poll(ended, { timeout: 120_000 }).toBeGreaterThanOrEqual(20)
  const before = await ended()
  await writeFile(gate, '')
  const { code, err } = await run
  expect([code, err, await wasOpen]).toEqual([3, expect.stringContaining('RUN_NULL_SHARE'), true])
  const made = await rollouts(here.data)
  expect(made.every(({ end, labels }) => end !== null && labels['node'] === 'worker')).toBe(true)
  expect(made).toHaveLength(before + 1)
})

it('a node that is killed and one that is frozen lose their jobs to a third; each slot settles once, and late work of theirs counts nothing', async () => {
  const here = await coordinator(
    directory,
    'harm',
    'export default { nodes: { leaseMs: 3000 }, session: { pin: { seed: 7 } } }\n',
  )
  // An agent waits for its gate, so that what is done to its node is done in its middle, however slow this machine is.
  const gate = join(directory, 'gate')
  const agent = join(directory, 'agent.mjs')
  await writeFile(
    agent,
    `import { existsSync } from 'node:fs'
     import { setTimeout } from 'node:timers/promises'
     while (!existsSync(${JSON.stringify(gate)})) await setTimeout(50)
     const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, PADDOCK_PROMPT } = process.env
     const answer = await fetch(OPENAI_BASE_URL + '/chat/completions', {
       method: 'POST',
       headers: { authorization: 'Bearer ' + OPENAI_API_KEY, 'content-type': 'application/json' },
       body: JSON.stringify({ model: OPENAI_MODEL, messages: [{ role: 'user', content: PADDOCK_PROMPT }] }),
     })
     process.exit(answer.ok ? 0 : 1)
    `,
  )
  const killed = await node(here, 'killed', 1)
  const frozen = await node(here, 'frozen', 1)
  const command = `'${process.execPath}' '${agent}'`
  const asked = ['run', task, '--n', '6', '--min-usable', '0', '--harness', 'script', '--command', command, '--json']
  const run = paddock([...asked, '--data', here.data])
  const lost = [await killed.said('claimed'), await frozen.said('claimed')].map(({ job }) => job)
  await killed.end('SIGKILL')
  frozen.child.kill('SIGSTOP')
  const third = await node(here, 'third', 6)
  for (const job of lost) await third.line((line) => line['type'] === 'claimed' && line['job'] === job)
  await writeFile(gate, '')
  for (const job of lost) await third.line((line) => line['type'] === 'handed_in' && line['job'] === job)
  frozen.child.kill('SIGCONT')
  const late = await frozen.line((line) => ['lost', 'refused'].includes(line['type'] ?? ''))
  expect(late['job']).toBe(lost[1])
  const ended = await run
  expect([ended.code, ended.err]).toEqual([0, ''])

  const { summary } = JSON.parse(ended.out)
  const [{ settled }] = summary.groups
  expect(settled.members).toHaveLength(6)
  expect(new Set(settled.members.map(({ slot }: { slot: number }) => slot)).size).toBe(6)
  const ran = await rollouts(here.data)
  expect(ran.map(({ slot }) => slot).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5])
  expect(new Set(ran.map(({ end }) => end))).toEqual(new Set(['completed']))
  expect(ran.filter(({ attempt }) => attempt > 0)).toHaveLength(2)
  expect(ran.filter(({ labels }) => labels['node'] === 'killed')).toEqual([])

  // One that was killed comes back on its data directory, and what it had is not its own any more.
  const back = await node(here, 'killed', 1)
  expect(await back.said('given_back')).toMatchObject({ job: lost[0], detail: expect.stringContaining('not ours') })
  expect(await back.end()).toBe(0)
  await stopped()
  expect((await paddock(['fsck', '--data', here.data])).out).toContain('no problems')
})

it('a node gives back what it cannot do and says why; Ctrl-C gives back what is under way, and no try is counted', async () => {
  const here = await coordinator(directory, 'back', 'export default { session: { pin: { seed: 7 } } }\n')
  const unfit = await node(here, 'unfit', 1, '--labels', 'gpu,gui')
  const plugin = join(directory, 'mine.mjs')
  await writeFile(
    plugin,
    `export default {
       name: 'mine', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'none', replays: true,
       run: async () => new Promise(() => undefined),
     }\n`,
  )
  const config = join(directory, 'mine.config.mjs')
  await writeFile(config, `export default { harnesses: { mine: ${JSON.stringify(plugin)} } }\n`)
  // The run is one of a coordinator that has the plugin, which its node has not.
  await here.process.end()
  const again = started([
    'coordinator',
    '--data',
    here.data,
    '--config',
    config,
    '--control-port',
    new URL(here.url).port,
  ])
  await again.said('ready')
  const run = new Running(['run', task, '--min-usable', '0', '--harness', 'mine', '--data', here.data])
  const given = await unfit.said('given_back')
  expect(given['detail']).toContain('HARNESS_UNKNOWN')
  await run.end()

  const plain = await node({ ...here, process: again }, 'plain', 1)
  const command = ['--harness', 'script', '--command', 'exec sleep 600', '--needs', 'gui']
  const sleeper = new Running(['run', task, '--min-usable', '0', ...command, '--data', here.data])
  const { job } = await unfit.line((line) => line['type'] === 'claimed' && line['job'] !== given['job'])
  expect(await unfit.end()).toBe(0)
  const other = await node({ ...here, process: again }, 'other', 1, '--labels', 'gui')
  expect(await other.said('claimed')).toMatchObject({ job, detail: 'slot 0, attempt 1' })
  await sleeper.end()
  expect(await other.said('given_back')).toMatchObject({ job })
  const token = (await readFile(join(here.data, 'control-token'), 'utf8')).trim()
  const rl = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${here.url}/rl/v1/runs${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    expect([answer.ok, answer.ok ? '' : await answer.text()]).toEqual([true, ''])
  }
  const script = { harness: 'script', command: 'exec sleep 600' }
  await rl('', { run_id: 'trainers', tasks: task, needs: ['gui'], ...script })
  await rl('/trainers/attach', { resume_step: null })
  await rl('/trainers/groups', { groups: [{ group_id: 'g', task: 'log-forensics', n: 1 }] })
  await other.line((line) => line['type'] === 'claimed' && line['job'] !== job)
  expect(plain.lines.filter(({ type }) => type === 'claimed')).toEqual([])
})

it('weights that only somebody says are told to nodes: they pause, and what they sample is of the right ones; one that joins is told', async () => {
  const engine = await startEngine('--wire', 'openai')
  try {
    const here = await coordinator(directory, 'told', undefined, '--engine', engine.url)
    const weights = async (version: string) => {
      const told = await paddock(['engine', 'weights', version, '--json', '--data', here.data])
      expect([told.code, told.err]).toEqual([0, ''])
      return JSON.parse(told.out).nodes
    }
    expect(await weights('one')).toEqual({ answered: 0, slowest: null, passed: [] })
    const worker = await node(here, 'told-node', 1)
    const [asked, gate] = [join(directory, 'told-asked'), join(directory, 'told-gate')]
    const agent = join(directory, 'twice.mjs')
    await writeFile(
      agent,
      `import { existsSync, writeFileSync } from 'node:fs'
       import { setTimeout } from 'node:timers/promises'
       const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, PADDOCK_PROMPT } = process.env
       const ask = () => fetch(OPENAI_BASE_URL + '/chat/completions', {
         method: 'POST',
         headers: { authorization: 'Bearer ' + OPENAI_API_KEY, 'content-type': 'application/json' },
         body: JSON.stringify({ model: OPENAI_MODEL, messages: [{ role: 'user', content: PADDOCK_PROMPT }] }),
       })
       await (await ask()).text()
       writeFileSync(${JSON.stringify(asked)}, '')
       while (!existsSync(${JSON.stringify(gate)})) await setTimeout(20)
       await (await ask()).text()
      `,
    )
    const harness = ['--harness', 'script', '--command', `'${process.execPath}' '${agent}'`, '--min-usable', '0']
    const run = paddock(['run', task, ...harness, '--json', '--data', here.data])
    while (!existsSync(asked)) await setTimeout(20)
    expect(await weights('two')).toMatchObject({ answered: 1, slowest: { node: 'told-node' }, passed: [] })
    await writeFile(gate, '')
    const ended = await run
    expect([ended.code, ended.err]).toEqual([0, ''])
    expect(worker.lines.some(({ type }) => type === 'handed_in')).toBe(true)
    await stopped()
    const [only] = await rollouts(here.data)
    const store = await openReader(here.data)
    const [session] = await store.recorder.sessions({ rolloutId: only?.id ?? '' })
    const { calls } = await store.recorder.session(session?.id ?? '')
    expect(calls.map(({ commit }) => [commit?.weightVersionBefore, commit?.weightVersionAfter])).toEqual([
      ['one', 'one'],
      ['two', 'two'],
    ])
    await store.close()
  } finally {
    await engine.kill()
  }
})

it('neither speaks plain HTTP beyond this machine, but where it is told that the network encrypts', async () => {
  const data = join(directory, 'plain-data')
  for (const [command, args, env] of [
    ['coordinator', ['--control-host', '0.0.0.0'], {}],
    ['serve', [], { PADDOCK_CONTROL_HOST: '0.0.0.0' }],
    ['run', [task], { PADDOCK_CONTROL_HOST: '0.0.0.0', PADDOCK_PLAIN_HTTP: '0' }],
  ] as const) {
    const far = await paddock([command, '--data', data, ...args], env)
    expect([command, far.code, far.err]).toEqual([command, 2, expect.stringMatching(/PLAIN_HTTP.*PADDOCK_TLS_CERT/s)])
  }
  const join_ = ['node', '--join', 'http://192.0.2.1:8791', '--data', data]
  const away = await paddock(join_, { PADDOCK_CONTROL_TOKEN: 'x'.repeat(43) })
  expect([away.code, away.err]).toEqual([2, expect.stringContaining('PLAIN_HTTP')])
  const told = started([
    'coordinator',
    '--data',
    data,
    '--control-host',
    '0.0.0.0',
    '--control-port',
    '0',
    '--plain-http',
  ])
  expect(await told.said('ready')).toMatchObject({ control: expect.stringContaining('http://127.0.0.1:') })
  // What runs is told by whoever looks, whose own variables say nothing of it.
  const doctor = await paddock(['doctor', '--no-docker', '--no-engine', '--json', '--data', data])
  const { findings } = JSON.parse(doctor.out) as { findings: readonly { readonly about: string }[] }
  expect(findings.filter(({ about }) => about === 'control')).toMatchObject([
    { status: 'warning', what: expect.stringMatching(/offers it at http:\/\/0\.0\.0\.0:\d+: tokens/) },
  ])
})

it('another version is refused by name, a session of another token by 403, and a body that is too large', async () => {
  const { data, url } = await coordinator(directory, 'asked', 'export default { nodes: { maxHandInMb: 1 } }\n')
  const tokens = await Promise.all(
    ['one', 'other'].map(async (name) => {
      const made = await paddock(['token', 'create', '--role', 'node', '--name', name, '--data', data])
      return made.out.trim()
    }),
  )
  const ask = async (by: number, method: string, path: string, body?: unknown) => {
    const raw = body instanceof Uint8Array
    const answer = await fetch(`${url}/nodes/sessions${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens[by]}`,
        'content-type': raw ? 'application/octet-stream' : 'application/json',
      },
      ...(body === undefined ? {} : { body: raw ? new Uint8Array(body) : JSON.stringify(body) }),
    })
    const text = await answer.text()
    return [answer.status, text === '' ? null : JSON.parse(text)] as const
  }
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  const hello = { protocol: 5, paddock: version, name: 'n', labels: [] }
  for (const skew of [{ protocol: 4 }, { paddock: '99.0.0' }]) {
    const [status, { error }] = await ask(0, 'POST', '', { ...hello, ...skew })
    expect([status, error.code]).toEqual([409, 'NODE_VERSION'])
    expect(error.message).toContain(version)
  }
  const [opened, { session_id: session }] = await ask(0, 'POST', '', hello)
  expect(opened).toBe(201)
  const job = session
  const routes = [
    ['POST', `/${session}/beat`, { jobs: [] }],
    ['POST', `/${session}/claims`, { request_id: session, limit: 1, capacity: {}, mark: '', rewound: 0 }],
    ['POST', `/${session}/weights`, { mark: '', failed: null, also: [], wait_ms: 0 }],
    ['POST', `/${session}/drain`],
    ['GET', `/${session}/runs/r/files`],
    ['GET', `/${session}/runs/r/files/${'0'.repeat(64)}`],
    ['POST', `/${session}/jobs/${job}/hand-in?token=1&digest=${'0'.repeat(64)}`, new Uint8Array(1)],
    ['POST', `/${session}/verifications`, { request_id: session, limit: 1 }],
    ['GET', `/${session}/verifications/${job}/files?token=1`],
    ['GET', `/${session}/verifications/${job}/files/${'0'.repeat(64)}?token=1`],
    ['GET', `/${session}/verifications/${job}/artifacts/${'0'.repeat(64)}?token=1`],
    ['POST', `/${session}/verifications/${job}/hand-in?token=1`, { came: { missing: 'all' } }],
    ['GET', `/${session}/jobs/${job}/parents/${job}?token=1`],
    ['POST', `/${session}/jobs/${job}/give-back`, { token: 1, why: 'drain', reason: null }],
    ['DELETE', `/${session}`],
  ] as const
  for (const [method, path, body] of routes) {
    const [status, said] = await ask(1, method, path, body)
    expect([method, path, status, said?.error.code]).toEqual([method, path, 403, 'NODE_NOT_YOURS'])
    const [own] = await ask(0, method, path, body)
    expect([method, path, own]).not.toEqual([method, path, 403])
  }
  const large = await ask(
    0,
    'POST',
    `/${session}/jobs/${job}/hand-in?token=1&digest=${'0'.repeat(64)}`,
    new Uint8Array(2 ** 20 + 1),
  )
  expect([large[0], large[1].error.code]).toEqual([413, 'BODY_TOO_LARGE'])
})

it('a rollout that is too large to be handed in is given back with the reason, and its node asks for no more of the run', async () => {
  const here = await coordinator(directory, 'narrow', 'export default { nodes: { maxHandInMb: 1 } }\n')
  const small = await node(here, 'small', 1)
  const wide = ['--harness', 'script', '--command', 'head -c 3000000 /dev/urandom | base64 -w0']
  const run = new Running(['run', task, '--min-usable', '0', ...wide, '--data', here.data])
  expect((await small.said('refused'))['detail']).toContain('BODY_TOO_LARGE')
  const other = await node(here, 'other', 1)
  const { job } = await other.said('claimed')
  expect(small.lines.filter(({ type, job: one }) => type === 'claimed' && one === job)).toHaveLength(1)
  await run.end()
  expect(small.lines.filter(({ type }) => type === 'claimed')).toHaveLength(1)
})

it('they speak TLS: a certificate that nobody vouches for is refused by name, and one of a named authority is taken', async () => {
  const own = join(directory, 'tls')
  await mkdir(own)
  const [cert, key] = [join(own, 'cert.pem'), join(own, 'key.pem')]
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const named = ['-subj', '/CN=paddock', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert]
  await promisify(execFile)('openssl', [...made, ...named])
  const here = await coordinator(directory, 'secure', undefined, '--tls-cert', cert, '--tls-key', key)
  expect(here.url).toMatch(/^https:/)
  await expect(fetch(here.url.replace('https:', 'http:'))).rejects.toThrow('fetch failed')
  const token = (await paddock(['token', 'create', '--role', 'node', '--name', 'other', '--data', here.data])).out
  const env = { PADDOCK_CONTROL_TOKEN: token.trim() }
  const stranger = await paddock(['node', '--join', here.url, '--data', join(own, 'data')], env)
  expect([stranger.code, stranger.err]).toEqual([2, expect.stringContaining('TLS_UNTRUSTED')])
  const elsewhere = here.url.replace('127.0.0.1', 'localhost')
  const misnamed = await paddock(['node', '--join', elsewhere, '--tls-ca', cert, '--data', join(own, 'data')], env)
  expect([misnamed.code, misnamed.err]).toEqual([2, expect.stringMatching(/TLS_UNTRUSTED.*localhost/)])
  await node(here, 'trusted', 1, '--tls-ca', cert)
  const run = await paddock(['run', task, '--json', '--data', here.data])
  expect([run.code, run.err]).toEqual([0, ''])
  const [only] = await rollouts(here.data)
  expect(only).toMatchObject({ end: 'completed', labels: { node: 'trusted' } })
  const alone = await paddock(['coordinator', '--data', join(own, 'alone'), '--tls-cert', cert])
  expect([alone.code, alone.err]).toEqual([2, expect.stringContaining('tls.cert is named alone')])
})

it('an idle node asks once and waits: what comes is the answer; a rollout that is handed in holds no place', async () => {
  const config = 'export default { nodes: { leaseMs: 9000 }, session: { pin: { seed: 7 } } }\n'
  const here = await coordinator(directory, 'idle', config)
  const asked: { readonly path: string; answer: string | null }[] = []
  const claimedTwice = Promise.withResolvers<void>()
  const between = createServer((request, response) => {
    const one = { path: request.url ?? '', answer: null as string | null }
    asked.push(one)
    const { method = '', headers } = request
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    void (async () => {
      const sent = Buffer.concat(await request.toArray())
      // No hand-in comes to the coordinator before the node has claimed what is next.
      if (one.path.includes('/hand-in')) await claimedTwice.promise
      const { authorization = '', 'content-type': type = 'application/json' } = headers
      const init = { method, headers: { authorization, 'content-type': type }, signal: gone.signal }
      const answer = await fetch(`${here.url}${one.path}`, method === 'GET' ? init : { ...init, body: sent })
      one.answer = await answer.text()
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(one.answer)
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = between.address() as AddressInfo
    const idle = await node({ ...here, url: `http://127.0.0.1:${port}` }, 'idle-node', 1)
    const of = (what: string) => asked.filter(({ path }) => path.endsWith(what))
    await expect.poll(() => of('/beat').length).toBeGreaterThanOrEqual(3)
    expect([of('/claims').length, of('/verifications').length]).toEqual([1, 1])
    expect(of('/claims')[0]?.answer).toBeNull()
    const run = paddock(['run', task, '--n', '2', '--json', '--data', here.data])
    await expect.poll(() => idle.lines.filter(({ type }) => type === 'claimed').length).toBe(2)
    expect(asked.filter(({ path, answer }) => path.includes('/hand-in') && answer !== null)).toEqual([])
    expect(JSON.parse(of('/claims')[0]?.answer ?? '').jobs).toHaveLength(1)
    claimedTwice.resolve()
    const ended = await run
    expect([ended.code, ended.err]).toEqual([0, ''])
    expect(idle.lines.filter(({ type }) => type === 'handed_in')).toHaveLength(2)
    await stopped()
  } finally {
    between.close()
    between.closeAllConnections()
  }
})

it('a node generates the tasks of a run that names them', async () => {
  const here = await coordinator(directory, 'generated', seeded)
  await node(here, 'maker', 2)
  const config = join(directory, 'generated.config.mjs')
  const asked = ['run', 'records:3:1..2', '--env', 'sql', '--n', '1', '--json', '--data', here.data, '--config', config]
  const run = await paddock(asked)
  expect([run.code, run.err]).toEqual([0, ''])
  const ran = await rollouts(here.data)
  expect(ran.map(({ labels }) => labels['node'])).toEqual(['maker', 'maker'])
  expect(JSON.parse(run.out).summary.rollouts).toMatchObject([
    { verdict: { status: 'scored' } },
    { verdict: { status: 'scored' } },
  ])
})
