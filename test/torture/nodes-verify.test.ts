/** Work that is brought to a coordinator which has no Docker, verified by nodes as processes of their own, one of which is killed and one frozen while it verifies. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { pack } from 'tar-stream'
import { afterEach, expect, it } from 'vitest'
import { fsck, openReader } from '../../src/trajectory/index.ts'
import { paddock } from '../cli/paddock.ts'
import { type Coordinator, node, rollouts, started, stopped } from '../cli/running-nodes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const example = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const directory = tempDir()
afterEach(stopped)

/** A coordinator that reaches no Docker, with a run whose tasks are at `tasks`. */
async function withoutDocker(name: string, tasks: string): Promise<Coordinator> {
  const data = join(directory, name)
  const config = join(directory, `${name}.config.mjs`)
  await writeFile(config, 'export default { nodes: { leaseMs: 3000 } }\n')
  const process = started(['coordinator', '--data', data, '--config', config, '--control-port', '0'], {
    DOCKER_HOST: 'unix:///nowhere/docker.sock',
  })
  const { control: url = '' } = await process.said('ready')
  const here = { directory, data, url, process }
  expect(await ask(here, '/runs', { run_id: 'tasks', tasks })).toMatchObject([201, { run_id: 'tasks' }])
  return here
}

type Answer = readonly [status: number, body: { readonly error: { readonly code: string } } & Record<string, unknown>]

async function ask({ data, url }: Coordinator, path: string, body?: object): Promise<Answer> {
  const authorization = `Bearer ${(await readFile(join(data, 'control-token'), 'utf8')).trim()}`
  const sent = { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(`${url}/rl/v1${path}`, {
    headers: { authorization, 'content-type': 'application/json' },
    ...(body === undefined ? {} : sent),
  })
  return [answer.status, (await answer.json()) as Answer[1]]
}

/** A verdict, or the refusal of one: a busy machine outlasts one waiting request, and the same request asks for the same work. */
async function decided(here: Coordinator, work: object): Promise<Answer> {
  const answer = await ask(here, '/verify?wait_s=60', work)
  return answer[1]['state'] === 'pending' ? decided(here, work) : answer
}

async function archiveOf(name: string, body: string, linkname?: string): Promise<string> {
  const tar = pack()
  tar.entry({ name, mtime: new Date(0), ...(linkname === undefined ? {} : { type: 'symlink', linkname }) }, body)
  tar.finalize()
  return (await buffer(tar)).toString('base64')
}
const report = (attacker: string) => archiveOf('workspace/report.json', JSON.stringify({ attacker, stolen: [] }))

/** The example, whose tests take a while. */
async function slowTasks(name: string): Promise<string> {
  const at = join(directory, `${name}-tasks`, 'slow')
  await cp(example, at, { recursive: true })
  const file = join(at, 'tests/test.sh')
  const [first, ...rest] = (await readFile(file, 'utf8')).split('\n')
  await writeFile(file, [first, 'sleep 4', ...rest].join('\n'))
  return join(directory, `${name}-tasks`)
}

it('a node that is killed while it verifies: the verdict comes once, from another, and hostile archives come to none', async () => {
  const here = await withoutDocker('killed-one', await slowTasks('killed-one'))
  const work = { run_id: 'tasks', task: 'slow', archive: await report('203.0.113.77') }
  const pending = await ask(here, '/verify?wait_s=0', { idempotency_key: 'k', ...work })
  expect(pending).toMatchObject([200, { state: 'pending' }])
  const killed = await node(here, 'killed', 1)
  const { job } = await killed.said('verifying')
  await killed.end('SIGKILL')
  const other = await node(here, 'other', 1)
  expect(await other.said('verifying')).toMatchObject({ job })
  const [status, first] = await decided(here, { idempotency_key: 'k', ...work })
  expect([status, first]).toMatchObject([
    200,
    {
      state: 'done',
      verdict: {
        status: 'scored',
        trust: 'separate',
        components: { attacker: 1, stolen: 0 },
        verifier: { id: 'terminal/slow' },
      },
    },
  ])
  // Its lease was over: its next start has nothing of it, and what is asked again is the same.
  const back = await node(here, 'killed', 1)
  expect(await decided(here, { idempotency_key: 'k', ...work })).toEqual([200, first])
  const other2 = await decided(here, { ...work, idempotency_key: 'wrong', archive: await report('192.0.2.1') })
  expect(other2).toMatchObject([200, { verdict: { status: 'scored', components: { attacker: 0 } } }])
  // A box may fail on a machine that is busy: that is no verdict, and it is tried again.
  const verified = [other, back].flatMap(({ lines }) =>
    lines.filter((line) => line['type'] === 'verified' && line['job'] === job),
  )
  expect(verified.filter(({ detail }) => !detail?.startsWith('infra_error'))).toMatchObject([{ detail: 'scored 0' }])

  const hostile = [
    await archiveOf('../up', 'x'),
    await archiveOf('workspace/report.json', '', '/etc/passwd'),
    await archiveOf('etc/passwd', 'x'),
  ]
  for (const [n, archive] of hostile.entries()) {
    const refused = await ask(here, '/verify', { ...work, idempotency_key: `hostile ${n}`, archive })
    expect(refused).toMatchObject([400, { error: { code: 'WORK_REFUSED' } }])
  }
  await stopped()
  const store = await openReader(here.data)
  expect(await store.catalogue.verification('hostile 0')).toBeNull()
  expect(await store.catalogue.verification('k')).toMatchObject({ verdict: { components: { attacker: 1 } } })
  await store.close()
  expect((await fsck(here.data)).problems).toEqual([])
})

it('a node that is frozen while it verifies comes back late, and its verdict is no second one; one without Docker scores nothing', async () => {
  const here = await withoutDocker('frozen-one', await slowTasks('frozen-one'))
  const work = { run_id: 'tasks', task: 'slow', idempotency_key: 'k', archive: await report('203.0.113.77') }
  await ask(here, '/verify?wait_s=0', work)
  const frozen = await node(here, 'frozen', 1)
  const { job } = await frozen.said('verifying')
  frozen.child.kill('SIGSTOP')
  const third = await node(here, 'third', 1)
  expect(await third.said('verified')).toMatchObject({ job })
  const first = await decided(here, work)
  expect(first).toMatchObject([200, { state: 'done' }])
  frozen.child.kill('SIGCONT')
  await frozen.line(({ type }) => type === 'session')
  expect(await frozen.end()).toBe(0)
  expect(frozen.lines.filter(({ type }) => type === 'verified')).toEqual([])
  expect(await ask(here, '/verify/k')).toEqual(first)
  await third.end()

  const token = await paddock(['token', 'create', '--role', 'node', '--name', 'bare', '--data', here.data])
  const bare = ['node', '--join', here.url, '--name', 'bare', '--data', join(directory, 'bare')]
  const broken = started(bare, { DOCKER_HOST: 'unix:///nowhere/docker.sock', PADDOCK_CONTROL_TOKEN: token.out.trim() })
  await broken.said('ready')
  const failed = await decided(here, { ...work, idempotency_key: 'failed' })
  expect(failed, JSON.stringify(failed)).toMatchObject([503, { error: { code: 'VERIFY_FAILED' } }])
  const tries = () => broken.lines.filter(({ type }) => type === 'verified').length
  // The answer may be there before the node's last line is.
  await expect.poll(tries).toBeGreaterThanOrEqual(3)
  // Nothing was scored, and its key is free for whoever can.
  await node(here, 'able', 1)
  await broken.end()
  expect(tries()).toBe(3)
  const again = await decided(here, { ...work, idempotency_key: 'failed' })
  expect(again).toMatchObject([200, { state: 'done', verdict: { status: 'scored' } }])
})

it('a rollout that is unverified when its node dies is handed in by its next start and verified by another node; its group settles', async () => {
  const here = await withoutDocker('unverified-one', await slowTasks('unverified-one'))
  const config = join(directory, 'unverified-one.config.mjs')
  const left = await node(here, 'left', 1)
  const asked = ['run', join(directory, 'unverified-one-tasks'), '--n', '1', '--json', '--data', here.data]
  const run = paddock([...asked, '--config', config])
  const { job } = await left.said('claimed')
  const isUnverified = async (data: string): Promise<boolean> => {
    const store = await openReader(data)
    const all = await store.catalogue.rollouts({})
    await store.close()
    return all.some(({ work, end }) => work !== null && end === null)
  }
  await expect.poll(() => isUnverified(join(directory, 'left')), { timeout: 300_000 }).toBe(true)
  await left.end('SIGKILL')
  const back = await node(here, 'left', 1)
  expect(await back.said('handed_in')).toMatchObject({ job, detail: expect.stringContaining('job ready') })
  // Gone for ever: what it handed in is verified without it.
  await back.end('SIGKILL')
  expect(await isUnverified(here.data)).toBe(true)
  const other = await node(here, 'other', 1)
  expect(await other.said('verified')).toMatchObject({ detail: expect.stringMatching(/^(scored|hacked)/) })
  const ended = await run
  expect([ended.code, ended.err]).toEqual([0, ''])
  const { summary } = JSON.parse(ended.out)
  expect(summary.groups).toMatchObject([{ settled: { usable: 1, members: [{ attempt: 0, out: null }] } }])
  expect(other.lines.filter(({ type }) => type === 'handed_in')).toEqual([])
  await stopped()
  const store = await openReader(here.data)
  const all = await store.catalogue.rollouts({})
  expect(all).toMatchObject([{ end: 'completed', labels: { node: 'left' }, verdicts: [{ by: 'verifier' }] }])
  await store.close()
  expect((await fsck(here.data)).problems).toEqual([])
})

it('a rescore beside a coordinator without Docker is done by its node, and changes nothing where nothing changed', async () => {
  const here = await withoutDocker('again', example)
  const verifier = await node(here, 'again-node', 1)
  const run = await paddock(['run', example, '--json', '--data', here.data])
  expect([run.code, run.err]).toEqual([0, ''])
  const before = await rollouts(here.data)
  const nowhere = { DOCKER_HOST: 'tcp://127.0.0.1:9' }
  const rescore = (...more: readonly string[]) => paddock(['rescore', '--all', '--data', here.data, ...more], nowhere)
  const again = await rescore('--json')
  expect([again.code, JSON.parse(again.out)]).toMatchObject([
    0,
    { dryRun: false, rollouts: [{ rolloutId: before[0]?.id, outcome: 'same', after: null }] },
  ])
  expect((await verifier.said('verified'))['detail']).toMatch(/^scored /)
  expect(await rollouts(here.data)).toEqual(before)
  const own = await rescore('--tasks', example)
  expect([own.code, own.err]).toEqual([2, expect.stringContaining('--tasks hold for a rescore that this process does')])
})
