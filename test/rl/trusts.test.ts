/** Rows of rollouts whose verdicts an agent may have bought: a trainer gets none of their tokens unless it names them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from './trainer.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

/** Its verdicts have the trust that the task says. */
const environment = `export default (kit) => {
  const data = kit.z.strictObject({ trust: kit.z.string() })
  return kit.defineEnvironment({
    name: 'trusting', apiVersion: 1, verifierVersion: '1', task: data,
    load: (path) => kit.loadJsonTasks(path, { environment: 'trusting', data }),
    box: () => ({ image: { kind: 'paddock-base' }, profile: 'user', user: null, workdir: '/workspace', env: {}, network: 'none', agentTimeoutMs: 60000, verifyTimeoutMs: null }),
    tools: () => [],
    collect: async () => ({ items: [] }),
    verify: async ({ task }) => kit.scored(1, { verifier: { id: 'v', version: '1', sha256: kit.sha256('v') }, trust: task.data.trust }),
    scripts: { oracle: async () => ({ name: 'oracle', weight: 1, script: { steps: [{ say: 'Done.' }] } }), cheats: async () => [] },
  })
}`

describe.runIf(await requireDocker())('rows of a trainer', () => {
  let directory: string
  let serving: Serving
  let trainer: Trainer
  beforeAll(async () => {
    directory = tempDir()
    const data = join(directory, 'data')
    await writeFile(join(directory, 'trusting.mjs'), environment)
    await mkdir(join(directory, 'tasks'))
    for (const trust of ['separate', 'in_process', 'shared', 'unvalidated']) {
      const task = JSON.stringify({ instruction: `Say so (${trust}).`, data: { trust } })
      await writeFile(join(directory, `tasks/${trust}.json`), task)
    }
    const config = join(directory, 'paddock.config.mjs')
    await writeFile(config, `export default { environments: ['./trusting.mjs'] }`)
    serving = await serve(data, ['--config', config])
    trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
  })
  afterAll(() => serving.stop())

  const doubts = { separate: null, in_process: null, shared: 'shared', unvalidated: 'unvalidated' }
  it.each([
    [{}, doubts],
    [{ trusts: ['shared'] }, { ...doubts, shared: null }],
    [{ trusts: ['shared', 'unvalidated'] }, { ...doubts, shared: null, unvalidated: null }],
  ])('of a run with %j', async (asked, reasons) => {
    const run = `run-${Object.values(reasons).filter((reason) => reason === null).length}`
    await trainer.ask('POST', '/runs', {
      run_id: run,
      environment: 'trusting',
      tasks: join(directory, 'tasks'),
      ...asked,
    })
    await trainer.attach(run)
    const groups = Object.keys(reasons).map((task) => ({ group_id: `${run}-${task}`, task, n: 1 }))
    await trainer.ask('POST', `/runs/${run}/groups`, { groups })
    const found: Record<string, string | null | undefined> = {}
    while (Object.keys(found).length < groups.length) {
      for (const { group_id: group, claim_id: claim } of await trainer.claim(run, { wait_s: 60 })) {
        const { rows, task } = await trainer.rows(group, claim)
        expect(rows.map(({ reward }) => reward)).toEqual([1])
        const trains = rows.some(({ arrays }) => arrays.loss_mask.includes(1))
        expect(trains).toBe(rows[0]?.unusable_reason === null)
        found[task.name] = rows[0]?.unusable_reason
      }
    }
    expect(found).toEqual(reasons)
  })

  it('are refused for a trust that is always trained or unknown', async () => {
    const refused = await trainer.send('POST', '/runs', { run_id: 'none', trusts: ['host'] })
    expect(refused.status).toBe(400)
  })
})
