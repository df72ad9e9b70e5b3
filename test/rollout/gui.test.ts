/** Gui tasks with the reference agent: pictures reach the model, the log and the export; the verdict is the host's. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256, type Task } from '../../src/core/index.ts'
import { writeFrames } from '../../src/cli/frames/index.ts'
import { chatRequestOf } from '../../src/proxy/index.ts'
import { guiTextAgent, referenceAgent } from '../../src/rollout/index.ts'
import { runExport } from '../../src/trajectory/index.ts'
import { openWorld, type World } from './world.ts'
import { builtInGui } from '../../src/builtin/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const gui = builtInGui({ trustTasks: false })

const examples = join(import.meta.dirname, '../../examples/tasks/gui')

describe.runIf(await requireDocker())('the reference agent on a gui task', () => {
  let directory: string
  let world: World
  let task: Task

  beforeAll(async () => {
    directory = tempDir()
    world = await openWorld()
    ;[task] = (await gui.load(join(examples, 'sketch/draw-line-1'))) as [Task]
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  test('draws what was asked for, and what it saw is in the log, in the strip and in the export', async () => {
    await world.script(task, [...(await gui.scripts.oracle(task)).script.steps])
    const { rollouts } = await world.run({ tasks: [task], environment: gui, harness: referenceAgent() })
    expect(rollouts).toMatchObject([
      { end: 'completed', verdict: { status: 'scored', reward: 1, trust: 'host' }, taints: [] },
    ])
    const rolloutId = rollouts[0]?.rolloutId ?? ''
    const events = await world.store.recorder.events({ rolloutId })
    const seen = events.flatMap((event) => (event.kind === 'tool_result' ? (event.images ?? []) : []))
    expect(seen).toMatchObject([{ mediaType: 'image/png', width: 1024, height: 768 }])
    const drawn = await world.store.blobs.get(seen[0]?.sha256 ?? '')
    expect(pngSize(drawn)).toEqual({ width: 1024, height: 768 })

    const sessions = await world.store.recorder.sessions({ rolloutId })
    const logs = await Promise.all(sessions.map(({ id }) => world.store.recorder.session(id)))
    const strip = await writeFrames(world.store, { events, logs, directory: join(directory, 'frames') })
    expect(strip).toMatchObject([{ file: '0001-computer.png', tool: 'computer', sampled: expect.any(Number) }])
    expect(await readFile(join(directory, 'frames/0001-computer.png'))).toEqual(Buffer.from(drawn))
    expect(await readFile(join(directory, 'frames/index.html'), 'utf8')).toContain(strip[0]?.callId?.slice(-8))

    const out = join(directory, 'out')
    const query = { rolloutIds: [rolloutId] }
    await runExport({
      reader: world.store,
      readRequest: chatRequestOf,
      exporter: 'openai',
      out,
      query,
      paddockVersion: '0',
    })
    const [line = ''] = (await readFile(join(out, 'messages.jsonl'), 'utf8')).split('\n')
    const url = /"url":"(media\/[0-9a-f]{64}\.png)"/.exec(line)?.[1] ?? ''
    expect(sha256(await readFile(join(out, url)))).toBe(seen[0]?.sha256)
  })

  test('models that write UI-TARS, pyautogui or BrowserGym text solve tasks with the harness for these', async () => {
    const schemas = ['ui-tars', 'osworld-pyautogui', { name: 'browsergym', coordinates: 'relative1000' }]
    const tasks: Task[] = []
    for (const [at, schema] of schemas.entries()) {
      const set = join(directory, `text-${at}.json`)
      await writeFile(set, JSON.stringify({ app: 'sketch', goals: ['turn-dial'], seeds: [at + 1], schema }))
      const [one] = await gui.load(set)
      if (one === undefined) throw new Error('no task')
      const { steps } = (await gui.scripts.oracle(one)).script
      const said = steps.flatMap((step) => {
        const text = 'tool' in step ? step.args['text'] : undefined
        return typeof text === 'string' ? [{ answer: text }] : []
      })
      await world.script(one, [{ answer: 'I look at the screen first.' }, ...said])
      tasks.push(one)
    }
    const { rollouts } = await world.run({ tasks, environment: gui, harness: guiTextAgent() })
    const won = { end: 'completed', verdict: { status: 'scored', reward: 1 }, taints: [] }
    expect(rollouts).toMatchObject([won, won, won])
  })
})

/** Width and height of the header chunk (PNG specification, third edition, §11.2.1). */
function pngSize(bytes: Uint8Array) {
  const view = Buffer.from(bytes)
  return { width: view.readUInt32BE(16), height: view.readUInt32BE(20) }
}
