/** `paddock run` with real boxes: on its own, through the owner of the data directory, and stopped by Ctrl-C. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { containersOf } from '../rollout/world.ts'
import { paddock, serve } from './here.ts'
import { launcher } from './paddock.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const one = [task, '--task', 'log-forensics']

const directory = tempDir()

interface Summary {
  readonly summary: {
    readonly runId: string
    readonly cancelled: boolean
    readonly rollouts: readonly {
      readonly rolloutId: string
      readonly end: string
      readonly verdict: { status: string }
    }[]
  }
}

describe.runIf(await requireDocker())('paddock run', () => {
  it('prints a table of verified rollouts that list, show and export find again', async () => {
    const data = join(directory, 'alone')
    const ended = await paddock(['run', ...one, '--n', '2', '--data', data])
    expect(ended.code).toBe(0)
    expect(ended.out).toMatch(/^task +harness +end +verdict +reward +calls +tokens +time +rollout/)
    expect(ended.out.match(/^log-forensics +reference +completed +scored +[01]/gm)).toHaveLength(2)
    expect(ended.err).toContain('no language model')
    const id = /^log-forensics .* (\w{8})$/m.exec(ended.out)?.[1] ?? ''
    const shown = await paddock(['show', id, '--data', data])
    expect(shown.out).toContain('calls shell')
    expect(shown.out).toMatch(/tool_result +shell: ok/)
    expect(shown.out).toMatch(/verdict scored, reward [01]/)
  })

  it('hands the run to the process that owns the data directory', async () => {
    const data = join(directory, 'owned')
    const owner = await serve(data)
    try {
      const ended = await paddock(['run', ...one, '--json', '--data', data])
      expect(ended.code).toBe(0)
      const { summary } = JSON.parse(ended.out) as Summary
      expect(summary.rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored' } }])
      const listed = await paddock(['list', 'rollouts', '--run', summary.runId, '--json', '--data', data])
      expect(JSON.parse(listed.out).rollouts).toMatchObject([{ id: summary.rollouts[0]?.rolloutId, end: 'completed' }])
      const refused = await paddock(['run', ...one, '--harness', 'nobody', '--data', data])
      expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/HARNESS_UNKNOWN: .*refuses.* Fix: /) })
    } finally {
      await owner.stop()
    }
  })

  it.each(['alone', 'at the owner'])('ends with 130 on Ctrl-C and keeps the record: %s', async (where) => {
    const data = join(directory, `stopped-${where.replaceAll(' ', '-')}`)
    const owner = where === 'alone' ? null : await serve(data)
    const args = ['run', ...one, '--harness', 'shell', '--command', 'sleep 300', '--data', data, '--json']
    const child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    // In the agent stage as soon as the reader beside it sees its event.
    while (child.exitCode === null) {
      const seen = await paddock(['list', 'rollouts', '--json', '--data', data])
      const rollouts = seen.code === 0 ? (JSON.parse(seen.out).rollouts as { id: string; harness: string }[]) : []
      const rollout = rollouts.find(({ harness }) => harness === 'shell')
      if (rollout === undefined) continue
      const events = JSON.parse((await paddock(['show', rollout.id, '--json', '--data', data])).out).events
      if (events.some((event: { stage?: string }) => event.stage === 'agent')) break
    }
    child.kill('SIGINT')
    const code = child.exitCode ?? ((await once(child, 'close')) as [number])[0]
    expect(code).toBe(130)
    expect((JSON.parse(out) as Summary).summary).toMatchObject({ cancelled: true, rollouts: [{ end: 'cancelled' }] })
    await owner?.stop()
    expect(containersOf((JSON.parse(out) as Summary).summary.runId)).toEqual([])
  })
})
