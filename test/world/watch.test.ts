/** Debian's Prometheus looks at a Paddock that works: its metrics are well made, and every query of the dashboard is answered. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../../scripts/free-port.ts'
import { paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const run = promisify(execFile)
const deploy = (name: string): string => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))
const tasks = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}

/** Panels of what goes wrong: nothing did, so nobody counted it yet. */
const quiet = new Set(['Findings on calls, in 5 minutes', 'Faults that a harness saw, in 5 minutes'])

let directory: string
let serving: Serving
let prometheus: ReturnType<typeof spawn>
let origin: string
let token: string

interface Answer {
  readonly status: string
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] }
}

async function ask(expr: string): Promise<Answer> {
  const reply = await fetch(`${origin}/api/v1/query?query=${encodeURIComponent(expr)}`)
  return (await reply.json()) as Answer
}

const valueOf = async (expr: string): Promise<string | undefined> => (await ask(expr)).data.result[0]?.value[1]

const until = (isTrue: () => Promise<boolean>): Promise<boolean> =>
  vi.waitUntil(isTrue, { interval: 200, timeout: 300_000 })

describe.skipIf(!existsSync('/usr/bin/prometheus'))('Prometheus', () => {
  beforeAll(async () => {
    directory = tempDir()
    const data = join(directory, 'data')
    serving = await serve(data)
    const made = await paddock(['token', 'create', '--name', 'watch', '--role', 'view', '--data', data, '--json'])
    token = (JSON.parse(made.out) as { token: string }).token
    await writeFile(join(directory, 'token'), token)
    const port = await freePort()
    origin = `http://127.0.0.1:${port}`
    const config = (await readFile(deploy('prometheus/prometheus.yml'), 'utf8'))
      .replace('paddock:8791', new URL(serving.ready.control).host)
      .replace('/etc/paddock/token', join(directory, 'token'))
      .replace('scrape_interval: 10s', 'scrape_interval: 1s')
    await writeFile(join(directory, 'prometheus.yml'), config)
    const listen = `--web.listen-address=127.0.0.1:${port}`
    const files = [
      `--config.file=${join(directory, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(directory, 'tsdb')}`,
    ]
    prometheus = spawn('prometheus', [...files, listen], { stdio: 'ignore' })
    await until(async () => (await valueOf('up').catch(() => null)) === '1')
    // A counter that is there before something happens shows what happens.
    const ran = await paddock(['run', tasks, '--harness', 'reference', '--n', '2', '--data', data])
    expect(ran.err).not.toContain('Fix:')
    await until(async () => (await valueOf('sum(paddock_rollout_ends_total)')) === '2')
  })

  afterAll(async () => {
    if (prometheus?.exitCode === null) {
      prometheus.kill()
      await once(prometheus, 'exit')
    }
    await serving?.stop()
  })

  it('finds nothing to mend in the metrics and in the configuration', async () => {
    const reply = await fetch(`${serving.ready.control}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    await writeFile(join(directory, 'metrics'), await reply.text())
    const check = await run('sh', ['-c', 'promtool check metrics < "$0"', join(directory, 'metrics')])
    expect(check.stderr).toBe('')
    await run('promtool', ['check', 'config', join(directory, 'prometheus.yml')])
  })

  it('answers every query of the dashboard, with numbers where something happened', async () => {
    const { panels } = JSON.parse(await readFile(deploy('grafana/paddock.json'), 'utf8')) as Dashboard
    const asked = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })))
    expect(asked.length).toBeGreaterThan(20)
    // A rate needs two looks at what it counts, so some answers come a look later than the last rollout.
    const unanswered = async (): Promise<readonly unknown[]> => {
      const answers = await Promise.all(asked.map(async (query) => ({ ...query, ...(await ask(query.expr)) })))
      return answers.filter(
        ({ title, status, data }) => status !== 'success' || (data.result.length === 0 && !quiet.has(title)),
      )
    }
    await vi
      .waitUntil(async () => (await unanswered()).length === 0, { interval: 500, timeout: 60_000 })
      .catch(() => {})
    expect(await unanswered()).toEqual([])
    expect(await valueOf('sum(paddock_calls_total) > 0')).toBeDefined()
    expect(await valueOf('paddock_rollouts_running')).toBe('0')
  })
})
