/** The image and the compose file as a user has them: rollouts in boxes of the host's daemon, and a restart under load. */
import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const project = `paddock-test-${process.pid}`
const image = `${project}:latest`
/** The user of the image. */
const uid = 10_001

let boxes: string
let env: NodeJS.ProcessEnv
let control: string
beforeAll(async () => {
  // Short, for a socket's path has 107 bytes; its path is the daemon's too.
  boxes = await mkdtemp('/tmp/pb-')
  await chown(boxes, uid, uid)
  const { gid } = await stat('/var/run/docker.sock')
  const [port, controlPort] = [await freePort(), await freePort()]
  control = `http://127.0.0.1:${controlPort}`
  env = {
    ...process.env,
    PADDOCK_IMAGE: image,
    PADDOCK_BOXES: boxes,
    DOCKER_GID: String(gid),
    PADDOCK_TASKS: join(root, 'examples/tasks'),
    PADDOCK_PORT: String(port),
    PADDOCK_CONTROL_PORT: String(controlPort),
  }
  await run('sh', ['scripts/image', '--tag', image], { cwd: root })
  await compose('up', '-d')
  await ready()
})
afterAll(async () => {
  await compose('down', '--volumes', '--timeout', '5')
  await run('docker', ['image', 'rm', '--force', image])
  await rm(boxes, { recursive: true, force: true })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function compose(...args: readonly string[]): Promise<string> {
  const file = join(root, 'deploy/compose/compose.yaml')
  const { stdout } = await run('docker-compose', ['--project-name', project, '--file', file, ...args], {
    env,
    maxBuffer: 16 * 2 ** 20,
  })
  return stdout
}

/** A command of the program in the container. */
const inside = (...args: readonly string[]): Promise<string> => compose('exec', '-T', 'paddock', 'paddock', ...args)

async function ready(): Promise<void> {
  const state = () =>
    fetch(`${control}/readyz`).then(
      ({ status }) => status,
      () => 0,
    )
  await vi.waitFor(async () => expect(await state()).toBe(200), { timeout: 300_000, interval: 200 })
}

it('runs a rollout in a box of the host, verifies it in another, and keeps it as its own user', async () => {
  // Of a Paddock on the host, on the same daemon: nobody in the container takes it for left behind.
  const provider = dockerProvider({ warmBoxes: 0 })
  await using beside = await provider.createBox({
    image: await provider.ensureImage({ kind: 'paddock-base' }),
    profile: 'user',
    labels: { role: 'probe' },
  })
  const { summary } = JSON.parse(
    await inside('run', '/tasks/terminal/log-forensics', '--harness', 'reference', '--json'),
  ) as { summary: { rollouts: readonly { rolloutId: string; verdict: object }[] } }
  expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { reward: 1, trust: 'separate' } }])
  const gone = JSON.parse(await inside('gc', '--json')) as { failed: readonly unknown[] }
  expect(gone.failed).toEqual([])
  expect(await beside.exec({ command: 'true' })).toMatchObject({ kind: 'exited', code: 0 })
  await provider.close()
  const files = await compose('exec', '-T', 'paddock', 'stat', '-c', '%u %a', '/data', '/data/control-token')
  expect(files.trim().split('\n')).toEqual([`${uid} 700`, `${uid} 600`])
})

it('does not start by itself in plain HTTP, on whatever is published of it; with a certificate it does, and is healthy', async () => {
  const bare = run('docker', ['run', '--rm', image])
  await expect(bare).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/PLAIN_HTTP.*PADDOCK_TLS_CERT/s) })
  const certs = await mkdtemp('/tmp/pc-')
  const name = `${project}-tls`
  try {
    const [cert, key] = [join(certs, 'cert.pem'), join(certs, 'key.pem')]
    const subject = ['-subj', '/CN=paddock', '-addext', 'subjectAltName=DNS:paddock']
    await run('openssl', [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '1',
      '-keyout',
      key,
      '-out',
      cert,
      ...subject,
    ])
    for (const file of [certs, cert, key]) await chown(file, uid, uid)
    const named = ['--env', 'PADDOCK_TLS_CERT=/certs/cert.pem', '--env', 'PADDOCK_TLS_KEY=/certs/key.pem']
    await run('docker', [
      'run',
      '--detach',
      '--rm',
      '--name',
      name,
      '--volume',
      `${certs}:/certs:ro`,
      ...named,
      '--health-interval',
      '1s',
      image,
    ])
    const health = async () =>
      (await run('docker', ['inspect', '--format', '{{.State.Health.Status}}', name])).stdout.trim()
    await vi.waitFor(async () => expect(await health()).toBe('healthy'), { timeout: 120_000, interval: 200 })
    const doctor = await run('docker', ['exec', name, 'paddock', 'doctor', '--no-docker', '--no-engine'])
    expect(doctor.stdout).toMatch(/ok +control +process \d+ offers it at https:\/\/0\.0\.0\.0:8791/)
  } finally {
    await run('docker', ['rm', '--force', name]).catch(() => undefined)
    await rm(certs, { recursive: true, force: true })
  }
})

it('loses nothing of what was answered when it is restarted under load', async () => {
  const token = (await compose('exec', '-T', 'paddock', 'cat', '/data/control-token')).trim()
  const open = async (): Promise<{ sessionId: string; client: OpenAI }> => {
    const answer = await fetch(`${control}/sessions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{}',
    })
    const { session, key, baseUrl } = (await answer.json()) as { session: { id: string }; key: string; baseUrl: string }
    const path = new URL(baseUrl).pathname
    return {
      sessionId: session.id,
      client: new OpenAI({ apiKey: key, baseURL: `http://127.0.0.1:${env['PADDOCK_PORT']}${path}`, maxRetries: 30 }),
    }
  }
  const sessions = await Promise.all([open(), open(), open(), open()])
  const turns = 12
  let answered = 0
  let restarted: Promise<string> | undefined
  const talk = async ({ client }: { client: OpenAI }): Promise<number> => {
    for (let turn = 0; turn < turns; turn += 1) {
      const { choices } = await client.chat.completions.create(
        { model: 'scripted-hermes', max_tokens: 16, messages: [{ role: 'user', content: `Count ${turn}.` }] },
        { idempotencyKey: `turn-${turn}` },
      )
      expect(choices[0]?.message.role).toBe('assistant')
      answered += 1
      if (answered === 16) restarted = compose('restart')
    }
    return turns
  }
  expect(await Promise.all(sessions.map(talk))).toEqual(sessions.map(() => turns))
  expect(restarted).toBeDefined()
  await restarted
  await ready()
  for (const { sessionId } of sessions) {
    const { calls } = JSON.parse(await inside('show', sessionId, '--json')) as {
      calls: readonly { outcome: { kind: string } | null; superseded: boolean }[]
    }
    // Each turn is there as an answer that counts, once; what was cut off stands beside as what it is.
    const whole = calls.filter(({ outcome, superseded }) => outcome?.kind === 'complete' && !superseded)
    expect(whole).toHaveLength(turns)
  }
  const { problems } = JSON.parse(await inside('fsck', '--json')) as { problems: readonly unknown[] }
  expect(problems).toEqual([])
})
