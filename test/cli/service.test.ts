/** What a service needs: readiness, a unit that systemd takes, completion in a shell. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/program.ts'
import { openReader } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Engines } from '../fleet/support.ts'
import { serve, type Serving } from './here.ts'
import { chat, serve as serveProcess } from './paddock.ts'

const units = fileURLToPath(new URL('../../deploy/systemd', import.meta.url))
const has = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

const directory = tempDir()

describe('GET /readyz', () => {
  const engines = new Engines()
  let serving: Serving
  beforeAll(async () => {
    await engines.start(1)
    serving = await serve(join(directory, 'data'), ['--engine', engines.at(0).url])
  })
  afterAll(async () => {
    await serving?.stop()
    await engines[Symbol.asyncDispose]()
  })

  async function ready(path = '/readyz') {
    const answer = await fetch(`${serving.ready.control}${path}`)
    return [answer.status, await answer.json()] as const
  }

  it('says when harnesses can be served, and when the engine is gone, without a token', async () => {
    expect(await ready()).toEqual([200, { status: 'ready', store: 'open', engine: 'reachable' }])
    await engines.at(0).kill()
    await expect
      .poll(() => ready(), { interval: 50, timeout: 60_000 })
      .toEqual([503, { status: 'not_ready', store: 'open', engine: 'unreachable' }])
    expect(await ready('/healthz')).toEqual([200, { status: 'ok' }])
    await engines.revive(0)
    await expect.poll(() => ready(), { interval: 50, timeout: 60_000 }).toMatchObject([200, { status: 'ready' }])
  })
})

it.each(['SIGINT', 'SIGTERM'] as const)(
  'a session that somebody asked for goes on under its key after a restart by %s, and is closed when its owner closes it',
  async (signal) => {
    const data = join(directory, signal)
    const first = await serveProcess(data)
    const authorization = `Bearer ${await readFile(join(data, 'control-token'), 'utf8')}`
    const headers = { authorization, 'content-type': 'application/json' }
    const asked = await fetch(`${first.ready.control}/sessions`, { method: 'POST', headers, body: '{}' })
    const { session, key, baseUrl } = (await asked.json()) as {
      session: { id: string }
      key: string
      baseUrl: string
    }
    const say = async (at: Serving) => {
      const env = {
        ...at.ready.env,
        OPENAI_API_KEY: key,
        OPENAI_BASE_URL: at.ready.inference + new URL(baseUrl).pathname,
      }
      const body = { messages: [{ role: 'user', content: 'Count.' }], max_tokens: 16 }
      return (await chat({ ...at.ready, env }, body)).status
    }
    expect(await say(first)).toBe(200)
    first.kill(signal)
    expect(await first.ended).toMatchObject({ code: 0 })
    const second = await serve(data)
    expect(await say(second)).toBe(200)
    const closing = await fetch(`${second.ready.control}/sessions/${session.id}`, { method: 'DELETE', headers })
    expect([closing.ok, await say(second)]).toEqual([true, 409])
    await second.stop()
    // Closed is ended; so is what `serve` opened for whoever reads its output.
    await using reader = await openReader(data)
    const ends = (await reader.catalogue.rollouts({})).map(({ end }) => end)
    expect(ends).toEqual(['completed', 'completed', 'completed'])
  },
)

describe('the systemd units', () => {
  it.skipIf(!has('systemd-analyze'))('are such that systemd-analyze verify has nothing to say of them', () => {
    const names = readdirSync(units)
    expect(names).toEqual(['paddock-coordinator.service', 'paddock-node.service', 'paddock.service'])
    for (const name of names) {
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(units, name)], { encoding: 'utf8' })
      expect([name, status, stderr.split('\n').filter((line) => line.includes('paddock'))]).toEqual([name, 0, []])
    }
  })
})

async function script(shell: string): Promise<string> {
  let out = ''
  const code = await runCli(['completion', shell], {
    out: (text) => void (out += text),
    err: (text) => void (out += text),
    status: () => undefined,
    env: {},
    cwd: directory,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  expect(code).toBe(0)
  return out
}

describe('completion', () => {
  it.each([
    ['', ['serve', 'token', 'view', 'backup']],
    ['to', ['token']],
    ['token ', ['create', 'list', 'revoke', '--data']],
    ['token create --role ', ['admin', 'trainer', 'annotate', 'view']],
    ['view --ann', ['--annotate']],
    ['run --data x --budg', []],
    ['list ro', ['rollouts']],
  ])('of "paddock %s" in bash', async (line, wanted) => {
    const file = join(directory, 'completion.bash')
    await writeFile(file, await script('bash'))
    const words = ['paddock', ...line.split(' ')]
    const ask = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _paddock; printf '%s\\n' "\${COMPREPLY[@]}"`
    const said = execFileSync('bash', ['-eu', '-c', ask, 'bash', file, ...words], { encoding: 'utf8' }).split('\n')
    for (const word of wanted) expect(said).toContain(word)
    const last = words.at(-1) ?? ''
    expect(said.filter((word) => word !== '' && !word.startsWith(last))).toEqual([])
  })

  it.each([
    ['zsh', ['-n']],
    ['fish', ['--no-execute']],
  ])('for %s is a script that it can read', async (shell, flags) => {
    const text = await script(shell)
    for (const word of ['token', 'create', 'annotate']) expect(text).toContain(word)
    if (!has(shell)) return
    const file = join(directory, `completion.${shell}`)
    await writeFile(file, text)
    execFileSync(shell, [...flags, file])
  })

  it('refuses another shell by name', async () => {
    const said: string[] = []
    const io = { out: () => undefined, err: (text: string) => void said.push(text), status: () => undefined }
    const more = { env: {}, cwd: directory, colour: false, columns: null, signal: new AbortController().signal }
    expect(await runCli(['completion', 'csh'], { ...io, ...more })).toBe(2)
    expect(said.join()).toContain('bash, zsh, fish')
  })
})
