/** Resources servers of NeMo Gym, unmodified, on the real package: one that comes in it by the guide's own commands, and beside what stands in for it elsewhere. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { type Environment, nemoGymEnvironment, type NemoGymOptions } from '../../src/envs/index.ts'
import { referenceAgent } from '../../src/rollout/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openOwnWorld } from '../rollout/world.ts'
import { guidedRewards } from './guided.ts'
import { cache } from './vllm.ts'

const root = join(import.meta.dirname, '../..')
const python = join(cache, 'nemo-gym/bin/python')
const lab = join(root, 'test/lab/nemo-gym')

const directory = tempDir()

describe.skipIf(cache === '' || !existsSync(python))('example_multi_step of nemo-gym 0.7.0', () => {
  it('is run, verified by its own code and exported by the commands of the guide', async () => {
    const place = join(root, 'examples/environments/nemo-gym')
    const guide = 'environments-of-nemo-gym.md'
    const rewards = await guidedRewards({ guide, place, python, rows: 'synonym-rows', directory })
    const { known } = JSON.parse(await readFile(join(place, 'tasks/examples.json'), 'utf8'))
    const { oracle, cheats } = known['0']
    const [own = 0, ownOfBad = 0] = ownRewards([oracle, cheats[0]])
    expect([own, ownOfBad]).toEqual([1, 0])
    // Qwen Code's memory is a sub-agent, with a row of its own.
    expect(rewards.length).toBeGreaterThanOrEqual(2)
    expect([...new Set(rewards)]).toEqual([own])
  })

  it('says of the same work what the stand-in of the contract says', async () => {
    await writeFile(join(directory, 'words.json'), JSON.stringify({ rows: join(lab, 'rows.jsonl') }))
    const real = { app: 'resources_servers.example_multi_step.app', python, env: { PYTHONPATH: '' } }
    const [ofReal, ofStandIn] = [
      await verdicts(real),
      await verdicts({ app: join(lab, 'synonyms.py'), python: 'python3' }),
    ]
    expect(ofReal).toMatchObject(ofStandIn)
    expect(ofReal.map(({ reward }) => reward)).toEqual([1, 0])
  })

  /** What the class of the server says of a response, without HTTP and without Paddock. */
  function ownRewards(scripts: readonly unknown[]): readonly number[] {
    const { status, stdout, stderr } = spawnSync(python, ['-B', join(import.meta.dirname, 'nemo_gym_direct.py')], {
      input: scripts.map((steps) => JSON.stringify(steps)).join('\n'),
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
    return stdout.trim().split('\n').map(Number)
  }

  async function verdicts(where: Pick<NemoGymOptions, 'app' | 'python' | 'env'>) {
    const environment: Environment = nemoGymEnvironment({ name: 'words', version: '1', ...where })
    const [first, second] = (await environment.load(join(directory, 'words.json'))) as [Task, Task]
    await using world = await openOwnWorld()
    const call = (tool: string, args: object) => ({ tool, args })
    await world.script(first, [
      call('get_synonym_value', { synonym: 'calm' }),
      call('get_synonym_value', { word: 'calm' }),
      call('extract_synonym_values', { synonym_values: [413, 552] }),
      { say: 'Done.' },
    ])
    await world.script(second, [call('extract_synonym_values', { synonym_values: [1] }), { say: 'Done.' }])
    const { rollouts } = await world.run({ environment, tasks: [first, second], harness: referenceAgent() })
    return rollouts.map(({ end, taints, verdict }) => {
      const { reward = null, components = {} } = verdict ?? {}
      const { accuracy, set_overlap: overlap } = components as Record<string, number>
      return { end, taints, reward, accuracy, overlap }
    })
  }
})
