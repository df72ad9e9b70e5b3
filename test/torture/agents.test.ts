/** A task that needs two agents, in real boxes with a program of its own for each: the guide's commands, a trainer of both, and a kill on the way. */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { attempt, registerEnvironments } from '../../src/envs/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { environmentContract } from '../../src/testing/environment/index.ts'
import { openReader, ownBucket } from '../../src/trajectory/index.ts'
import { serve } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const vault = join(root, 'examples/environments/vault')
const config = join(vault, 'paddock.config.ts')
const registry = await registerEnvironments([join(vault, 'environment.ts')])

environmentContract({
  environment: registry.get('vault'),
  tasks: join(vault, 'tasks'),
  refused: [{ path: join(vault, 'environment.ts'), code: 'TASK_INVALID', names: /not JSON/ }],
  make: async () => dockerProvider(),
})

const directory = tempDir()

/** The command of the guide that begins so. */
async function command(begins: string): Promise<string> {
  const guide = await readFile(join(root, 'docs/guides/several-agents.md'), 'utf8')
  const found = guide.split('\n').find((line) => line.startsWith(begins))
  if (found === undefined) throw new Error(`the guide has no ${begins}`)
  return found
}

const shell = (line: string, env: Readonly<Record<string, string>>) =>
  promisify(execFile)('sh', ['-c', line], { cwd: root, env: { ...process.env, ...env } })

/** All that agents sampled, by session and by policy; no id of a segment comes twice. */
async function sampled(data: string) {
  await using reader = await openReader(data)
  const found = []
  const seen = new Set<string>()
  for (const rollout of await reader.catalogue.rollouts({})) {
    for (const session of await reader.recorder.sessions({ rolloutId: rollout.id })) {
      if (ownBucket(session) !== null) continue
      const { segments } = await reader.recorder.session(session.id, { bodies: [] })
      for (const { id, origin, tokens, policySpans } of segments) {
        if (origin !== 'sampled') continue
        expect(seen.has(id)).toBe(false)
        seen.add(id)
        found.push({
          rolloutId: rollout.id,
          ended: rollout.end !== null && rollout.end !== 'infra' && rollout.end !== 'cancelled',
          session: session.id,
          policy: session.policy.name ?? '',
          adapters: policySpans.map(({ policy }) => policy.adapter ?? ''),
          tokens: tokens.length,
        })
      }
    }
  }
  return found
}
const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

it('a script for nobody, or with acts of no agent, has no verdict and says why', async () => {
  const environment = registry.get('vault')
  const [task] = await environment.load(join(vault, 'tasks'), {})
  if (task === undefined) throw new Error('no task')
  const sandbox = dockerProvider()
  const { signal } = new AbortController()
  for (const [script, says] of [
    [
      { script: { steps: [] }, agents: { nobody: { steps: [{ say: 'hello' }] } } },
      /steps of nobody, which is no agent/,
    ],
    [{ script: { steps: [{ tool: 'enter_code', args: { code: '1' } }] } }, /steps of no agent/],
  ] as const) {
    const verdict = await attempt({
      environment,
      task,
      script: { name: 'wrong', weight: 1, ...script },
      sandbox,
      signal,
    })
    expect(verdict).toMatchObject({
      status: 'unscorable',
      reward: null,
      reason: expect.stringMatching(says) as unknown,
    })
  }
  await sandbox.close()
})

describe('the vault', () => {
  it('is opened by two programs that take turns, each under its own adapter, and exported policy by policy', async () => {
    const data = join(directory, 'guide')
    const env = { PADDOCK_DATA: data }
    await shell(await command('./paddock run'), env)
    const segments = await sampled(data)
    expect(new Set(segments.map(({ policy }) => policy))).toEqual(new Set(['opener', 'guide']))
    for (const { policy, adapters } of segments) expect(adapters).toEqual([`${policy}-0`])
    const trained: Record<string, number> = {}
    for (const policy of ['opener', 'guide']) {
      const out = join(directory, `out-${policy}`)
      await shell((await command('./paddock export')).replace('guide', policy).replace('out/guide', out), env)
      const manifest = JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8')) as {
        tokens: { trainable: number; sampled: number; not_exported: Record<string, number> }
      }
      trained[policy] = manifest.tokens.trainable
      expect(manifest.tokens.trainable + (manifest.tokens.not_exported['other_policy'] ?? 0)).toBe(
        manifest.tokens.sampled,
      )
    }
    const own = (name: string) => sum(segments.flatMap(({ policy, tokens }) => (policy === name ? [tokens] : [])))
    expect(trained).toEqual({ opener: own('opener'), guide: own('guide') })
    await using reader = await openReader(data)
    const [first] = await reader.catalogue.rollouts({})
    const events = await reader.recorder.events({ rolloutId: first?.id ?? '' })
    const turns = events.flatMap((event) => (event.kind === 'agent_turn' ? [event.agent] : []))
    expect(turns).toEqual(['opener', 'guide', 'opener'])
    const { stdout } = await shell(`./paddock show ${first?.id ?? ''}`, env)
    expect(stdout).toMatch(/policy opener[^]*policy guide/)
  })

  it('trains both from the same rollouts: advantages are of each by itself, weights go their own way', async () => {
    const data = join(directory, 'train')
    const serving = await serve(data, ['--config', config])
    try {
      const { stdout } = await shell(
        await command('PYTHONPATH=clients/python/src python3 examples/train/two_agents.py'),
        {
          PADDOCK_CONTROL_URL: serving.ready.control,
          PADDOCK_CONTROL_TOKEN: (await readFile(join(data, 'control-token'), 'utf8')).trim(),
          ADAPTERS: join(directory, 'adapters'),
        },
      )
      const told = stdout
        .trim()
        .split('\n')
        .map(
          (line) =>
            JSON.parse(line) as {
              step: number
              policy: string
              group: string
              version: number | null
              rewards: Record<string, number>
              advantages: Record<string, number>
              rows: Record<string, readonly [rollout: string, session: string]>
            },
        )
      expect(told).toHaveLength(8)
      await using reader = await openReader(data)
      const rows = new Set<string>()
      for (const { policy, rewards, advantages, rows: handed } of told) {
        // Computed from the verdicts that are in the store, by nothing of ours.
        const numbers: Record<string, number> = {}
        for (const id of Object.keys(rewards)) {
          const verdict = (await reader.catalogue.rollout(id)).verdicts.at(-1)
          if (verdict === undefined || verdict.reward === null) throw new Error('no number')
          numbers[id] = verdict.byPolicy?.[policy] ?? verdict.reward
        }
        expect(rewards).toEqual(numbers)
        const all = Object.values(numbers)
        const mean = sum(all) / all.length
        const deviation = Math.sqrt(sum(all.map((one) => (one - mean) ** 2)) / (all.length - 1))
        for (const [id, number] of Object.entries(numbers)) {
          expect(advantages[id]).toBeCloseTo(deviation === 0 ? 0 : (number - mean) / (deviation + 1e-6), 6)
        }
        for (const [row, [, session]] of Object.entries(handed)) {
          expect(rows.has(row)).toBe(false)
          rows.add(row)
          expect((await reader.recorder.session(session, { bodies: [] })).session.policy.name).toBe(policy)
        }
      }
      const versions = (step: number) =>
        Object.fromEntries(told.flatMap((one) => (one.step === step ? [[one.policy, one.version]] : [])))
      expect(versions(0)).toEqual({ opener: null, guide: null })
      expect(versions(1)).toEqual({ opener: null, guide: 1 })
      // What the guide says under its new adapter, the opener says under the old one.
      const segments = await sampled(data)
      const adapters = (name: string) => new Set(segments.flatMap((one) => (one.policy === name ? one.adapters : [])))
      expect(adapters('opener')).toEqual(new Set(['opener-0']))
      expect(adapters('guide')).toEqual(new Set(['guide-0', 'guide-1']))
    } finally {
      await serving.stop()
    }
  })

  it('goes on after a kill: all members end, and no token is in two sessions', async () => {
    const data = join(directory, 'killed')
    const args = ['--config', config, '--data', data]
    const asked = ['run', join(vault, 'tasks'), '--env', 'vault', '--harness', 'opener', '--n', '3']
    const child = spawn(join(root, 'paddock'), [...args, ...asked], { stdio: ['ignore', 'ignore', 'pipe'] })
    const gone = new Promise((resolve) => child.once('exit', resolve))
    let out = ''
    await new Promise<void>((resolve) =>
      child.stderr.on('data', (chunk: Buffer) => {
        out += chunk.toString()
        if (/\[[1-9]\/6\]/.test(out)) resolve()
      }),
    )
    child.kill('SIGKILL')
    await gone
    const [, run = ''] = /run (\w+): 6 rollouts/.exec(out) ?? []
    await shell(`./paddock --config ${config} --data ${data} run --resume ${run}`, {})
    const segments = await sampled(data)
    await using reader = await openReader(data)
    const ended = (await reader.catalogue.rollouts({})).filter(({ end }) => end === 'completed')
    expect(ended).toHaveLength(6)
    for (const { id, verdicts } of ended) {
      expect(verdicts).toHaveLength(1)
      const own = new Set(segments.flatMap((one) => (one.rolloutId === id ? [one.policy] : [])))
      expect(own).toEqual(new Set(['opener', 'guide']))
    }
  })
})
