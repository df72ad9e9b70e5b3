/** The image, and the compose files by both versions of compose, as a user has them: rollouts in boxes of the host's daemon, a restart under load, Prometheus beside it, a coordinator with two nodes. */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, copyFile, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { freePort } from '../../scripts/free-port.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { startEngine } from '../proxy/support.ts'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const image = `paddock-test-${process.pid}:latest`
const prometheusImage = `paddock-test-prometheus-${process.pid}:latest`
/** The user of the image. */
const uid = 10_001

/** The programs of compose that are had here, by their version. */
const programs: readonly (readonly [version: string, program: readonly string[]])[] = [
  ['1', ['docker-compose']],
  ['2', programOf2()],
]

/** Empty: this machine cannot have it, and said why. */
function programOf2(): readonly string[] {
  const found = spawnSync('sh', ['scripts/compose-2'], { cwd: root, encoding: 'utf8' })
  if (found.status !== 0) process.stderr.write(found.stderr)
  return found.status === 0 ? found.stdout.trim().split(' ') : []
}

beforeAll(async () => {
  await run('sh', ['scripts/image', '--tag', image], { cwd: root })
})
afterAll(async () => {
  await run('docker', ['image', 'rm', '--force', image, prometheusImage])
})

it('does not start by itself in plain HTTP, on whatever is published of it; with a certificate it does, and is healthy', async () => {
  const bare = run('docker', ['run', '--rm', image])
  await expect(bare).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/PLAIN_HTTP.*PADDOCK_TLS_CERT/s) })
  const certs = await mkdtemp('/tmp/pc-')
  const name = `paddock-test-${process.pid}-tls`
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

describe.each(programs)('by compose %s', (version, [program, ...first]) => {
  const isHere = program !== undefined
  const project = `paddock-test-${version}-${process.pid}`
  let folder: string
  let boxes: string
  let env: NodeJS.ProcessEnv
  let control: string

  beforeAll(async () => {
    if (!isHere) return
    folder = await mkdtemp('/tmp/paddock-compose-')
    // Short, for a socket's path has 107 bytes; its path is the daemon's too.
    boxes = await mkdtemp('/tmp/pb-')
    await chown(boxes, uid, uid)
    const { gid } = await stat('/var/run/docker.sock')
    const [port, controlPort] = [await freePort(), await freePort()]
    control = `http://127.0.0.1:${controlPort}`
    env = {
      ...process.env,
      PADDOCK_IMAGE: image,
      PROMETHEUS_IMAGE: prometheusImage,
      PADDOCK_WATCH_TOKEN: join(folder, 'watch-token'),
      PADDOCK_BOXES: boxes,
      DOCKER_GID: String(gid),
      PADDOCK_TASKS: join(root, 'examples/tasks'),
      PADDOCK_PORT: String(port),
      PADDOCK_CONTROL_PORT: String(controlPort),
    }
    await compose('up', '-d')
    await ready()
  })
  afterAll(async () => {
    if (!isHere) return
    await watched('down', '--volumes', '--timeout', '5')
    await rm(boxes, { recursive: true, force: true })
    await rm(folder, { recursive: true, force: true })
  })

  const composeOf = async (files: readonly string[], args: readonly string[], more = {}): Promise<string> => {
    const named = files.flatMap((file) => ['--file', join(root, 'deploy/compose', file)])
    const name = files.includes('nodes.yaml') ? `${project}-nodes` : project
    const { stdout } = await run(program ?? '', [...first, '--project-name', name, ...named, ...args], {
      env: { ...env, ...more },
      maxBuffer: 16 * 2 ** 20,
    })
    return stdout
  }
  const compose = (...args: readonly string[]): Promise<string> => composeOf(['compose.yaml'], args)
  const watched = (...args: readonly string[]): Promise<string> => composeOf(['compose.yaml', 'watch.yaml'], args)
  /** A command of the program in the container. */
  const inside = (...args: readonly string[]): Promise<string> => compose('exec', '-T', 'paddock', 'paddock', ...args)
  const ready = async (): Promise<void> => {
    const state = () =>
      fetch(`${control}/readyz`).then(
        ({ status }) => status,
        () => 0,
      )
    await vi.waitFor(async () => expect(await state()).toBe(200), { timeout: 300_000, interval: 200 })
  }

  it.runIf(isHere)(
    'runs a rollout in a box of the host, verifies it in another, and keeps it as its own user',
    async () => {
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
    },
  )

  it.runIf(isHere && existsSync('/usr/bin/prometheus'))('is watched by Prometheus beside it', async () => {
    const context = join(folder, 'prometheus')
    await mkdir(context)
    for (const name of ['prometheus', 'promtool']) await copyFile(`/usr/bin/${name}`, join(context, name))
    // Debian's Prometheus, started as the published image starts its own.
    const recipe = [
      `FROM ${image}`,
      'USER root',
      'COPY prometheus promtool /usr/bin/',
      'ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]',
      'CMD []',
      'HEALTHCHECK NONE',
    ]
    await writeFile(join(context, 'Dockerfile'), `${recipe.join('\n')}\n`)
    await run('docker', ['build', '--quiet', '--tag', prometheusImage, context])
    await writeFile(join(folder, 'watch-token'), await inside('token', 'create', '--name', 'watch', '--role', 'view'))
    await watched('up', '-d', 'paddock', 'prometheus')
    const query = (text: string) =>
      watched('exec', '-T', 'prometheus', 'promtool', 'query', 'instant', 'http://127.0.0.1:9090', text)
    await vi.waitFor(async () => expect(await query('up')).toMatch(/job="paddock".*=> 1 @/), {
      timeout: 120_000,
      interval: 500,
    })
    expect(await query('paddock_rollouts_running')).toMatch(/=> 0 @/)
  })

  it.runIf(isHere)(
    'runs rollouts on two nodes of a coordinator, each with a token in a file and boxes of the host',
    async () => {
      const engine = await startEngine('--host', '0.0.0.0')
      // A daemon that has just made its bridge names no gateway of it (20.10): the bridge itself has the address.
      const addresses = (await run('ip', ['-4', '-oneline', 'address', 'show', 'docker0'])).stdout
      const host = / inet ([\d.]+)\//.exec(addresses)?.[1] ?? ''
      expect(host).not.toBe('')
      const tokens = join(folder, 'tokens')
      await mkdir(tokens)
      const more = {
        ENGINE_URL: `http://${host}:${new URL(engine.url).port}`,
        PADDOCK_TOKENS: tokens,
        PADDOCK_PLACES: '2',
        PADDOCK_CONTROL_PORT: String(await freePort()),
      }
      const nodes = (...args: readonly string[]): Promise<string> => composeOf(['nodes.yaml'], args, more)
      const at = (...args: readonly string[]): Promise<string> => nodes('exec', '-T', 'coordinator', 'paddock', ...args)
      try {
        await nodes('up', '-d', 'coordinator')
        for (const name of ['node-1', 'node-2']) {
          const made = () => at('token', 'create', '--role', 'node', '--name', name)
          await writeFile(join(tokens, name), await vi.waitFor(made, { timeout: 60_000, interval: 500 }))
        }
        await nodes('up', '-d')
        const joined = async () => (await nodes('logs')).match(/node-\d does rollouts of/g)
        await vi.waitFor(async () => expect(await joined()).toHaveLength(2), { timeout: 120_000, interval: 500 })
        const asked = ['/tasks/terminal/log-forensics', '--n', '4', '--min-usable', '0', '--harness', 'reference']
        const { summary } = JSON.parse(await at('run', ...asked, '--json')) as {
          summary: { rollouts: readonly object[] }
        }
        // An engine of its own knows no solutions: what it did is scored, with nothing.
        const verified = { end: 'completed', verdict: { status: 'scored', trust: 'separate' } }
        expect(summary.rollouts).toMatchObject([verified, verified, verified, verified])
        const { rollouts } = JSON.parse(await at('list', 'rollouts', '--json')) as {
          rollouts: readonly { labels: Readonly<Record<string, string>> }[]
        }
        expect(new Set(rollouts.map(({ labels }) => labels['node']))).toEqual(new Set(['node-1', 'node-2']))
      } finally {
        await nodes('down', '--volumes', '--timeout', '30')
        await engine.kill()
      }
    },
  )

  it.runIf(isHere)('loses nothing of what was answered when it is restarted under load', async () => {
    const token = (await compose('exec', '-T', 'paddock', 'cat', '/data/control-token')).trim()
    const open = async (): Promise<{ sessionId: string; client: OpenAI }> => {
      const answer = await fetch(`${control}/sessions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: '{}',
      })
      const { session, key, baseUrl } = (await answer.json()) as {
        session: { id: string }
        key: string
        baseUrl: string
      }
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
})
