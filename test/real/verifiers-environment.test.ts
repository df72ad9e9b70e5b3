/** Environments of verifiers, unmodified, on the real package: one from the index by the guide's own commands, one with tools, one with a judge. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, verifiersEnvironment, type VerifiersOptions } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openOwnWorld } from '../rollout/world.ts'
import { guidedRewards } from './guided.ts'
import { cache } from './vllm.ts'

const root = join(import.meta.dirname, '../..')
const python = join(cache, 'advocacy/bin/python')
const lab = join(root, 'test/lab/verifiers')

const directory = tempDir()

describe.skipIf(cache === '' || !existsSync(python))('sophistry-bench-sprint 0.1.6 from the package index', () => {
  it('is run, scored by its own code and exported by the commands of the guide', async () => {
    const place = join(root, 'examples/environments/verifiers')
    const guide = 'environments-of-verifiers.md'
    const rewards = await guidedRewards({ guide, place, python, rows: 'advocacy-rows', directory })
    const { known } = JSON.parse(await readFile(join(place, 'tasks/stories.json'), 'utf8'))
    const { oracle, cheats } = known['0']
    const [own = 0, ownOfBad = 0] = ownRewards([oracle[0].say, cheats[0][0].say])
    expect([own, ownOfBad]).toEqual([1, expect.closeTo(0.28125)])
    // Qwen Code's memory is a sub-agent, with a row of its own.
    expect(rewards.length).toBeGreaterThanOrEqual(2)
    expect([...new Set(rewards)]).toEqual([own])
  })

  function ownRewards(answers: readonly string[]): readonly number[] {
    const { status, stdout, stderr } = spawnSync(python, ['-B', join(import.meta.dirname, 'advocacy_direct.py')], {
      input: answers.map((answer) => JSON.stringify(answer)).join('\n'),
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
    return stdout.trim().split('\n').map(Number)
  }
})

describe.skipIf(cache === '' || !existsSync(python))('verifiers 0.3.1', () => {
  const house = (kind: string, more: Partial<VerifiersOptions> = {}): Environment =>
    verifiersEnvironment({
      name: 'books',
      version: '1',
      load: 'counting-house',
      args: { kind },
      python,
      env: { PYTHONPATH: lab },
      ...more,
    })

  it('offers its tools, and scores what was said at last', async () => {
    await using world = await openOwnWorld()
    const environment = house('tools')
    const [task] = (await environment.load(join(lab, 'tasks'))) as [Task]
    const of = (name: string) => ({ tool: 'balance', args: { name } })
    await world.script(task, [of('ann'), of('bob'), { say: '42' }])
    const { rollouts } = await world.run({ environment, tasks: [task], harness: referenceAgent() })
    expect(rollouts).toMatchObject([
      {
        end: 'completed',
        taints: [],
        verdict: { status: 'scored', reward: 1, components: { right: 1, balance_calls: 2 } },
      },
    ])
  })

  it('has its judge where it is told', async () => {
    const judge = createServer((_, response) => {
      const message = { role: 'assistant', content: 'yes' }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'one', object: 'chat.completion', created: 0, model: 'j', choices }))
    }).listen(0, '127.0.0.1')
    await once(judge, 'listening')
    const url = `http://127.0.0.1:${(judge.address() as AddressInfo).port}/v1`
    try {
      const environment = house('judged', { judge: { url, model: 'j' } })
      const [, task] = (await environment.load(join(lab, 'tasks'))) as [Task, Task]
      await using world = await openOwnWorld()
      await world.script(task, [{ say: 'Seventeen.' }])
      const { rollouts } = await world.run({ environment, tasks: [task], harness: referenceAgent() })
      expect(rollouts).toMatchObject([{ verdict: { status: 'scored', reward: 1 } }])
    } finally {
      judge.close()
      judge.closeAllConnections()
    }
  })
})
