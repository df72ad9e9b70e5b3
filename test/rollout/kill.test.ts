import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { newId } from '../../src/core/index.ts'
import { endInterrupted } from '../../src/rollout/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { containersOf, model, runningOf, terminalTask } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

test.runIf(await requireDocker())(
  'kill -9 in the agent stage leaves no container, and the next owner of the store ends what was begun',
  async () => {
    const directory = tempDir()
    const engine = await useEngine('--model', model)
    const { instruction } = await terminalTask('log-forensics')
    const steps = [{ shell: 'echo begun' }, { shell: 'sleep 600' }]
    await engine.control('/scripts', { instruction, candidates: [{ name: 'only', weight: 0, steps }] })
    const runId = newId()
    const runner = join(import.meta.dirname, 'kill-runner.ts')
    const child = spawn(process.execPath, [runner, directory, engine.url, runId], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      let inAgent = 0
      for await (const line of createInterface({ input: child.stdout })) {
        const progress = JSON.parse(line) as { type: string; stage?: string; phase?: string }
        if (progress.type === 'stage' && progress.stage === 'agent' && progress.phase === 'start') inAgent += 1
        if (inAgent === 2) break
      }
      // It ended by itself otherwise.
      expect(inAgent).toBe(2)
      // Two agents with their relays, and two boxes of verifiers that are made meanwhile; the directories of their sockets. All
      // run, because one whose creation is under way at the kill would be left to the sweep.
      const patient = { interval: 5, timeout: 300_000 }
      await expect.poll(() => runningOf(runId).length, patient).toBeGreaterThanOrEqual(6)
      await using sandbox = dockerProvider()
      const ours = ({ why }: { readonly why: string }) => why.includes(`(process ${child.pid})`)
      const { kept } = await sandbox.sweep({ dryRun: true })
      expect(kept.filter((one) => ours(one) && one.kind === 'directory').length).toBeGreaterThanOrEqual(2)
      child.kill('SIGKILL')
      await once(child, 'exit')

      // Boxes end by themselves: their input is closed. What is no process goes with a sweep: this one, or the one of the
      // killed run's reaper, whichever comes first.
      await expect.poll(() => containersOf(runId).length, patient).toBe(0)
      const { removed, failed } = await sandbox.sweep()
      expect(failed.filter(ours)).toEqual([])
      // The directories of sockets, and the volume of the boxes' files of names.
      const waiting = ['directory', 'volume']
      expect(removed.filter((one) => ours(one) && !waiting.includes(one.kind))).toEqual([])
      const left = await sandbox.sweep({ dryRun: true })
      expect([...left.removed, ...left.kept, ...left.failed].filter(ours)).toEqual([])

      await using store = await openStore(directory)
      expect((await store.catalogue.rollouts({ runId })).map(({ end }) => end)).toEqual([null, null])
      expect(await endInterrupted(store)).toMatchObject({ ended: 2, unverified: [] })
      expect((await store.catalogue.rollouts({ runId })).map(({ end }) => end)).toEqual(['infra', 'infra'])
      expect(await endInterrupted(store)).toMatchObject({ ended: 0 })
    } finally {
      child.kill('SIGKILL')
    }
  },
)
