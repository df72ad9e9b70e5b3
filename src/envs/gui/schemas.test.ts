/** Tasks in the words that models are trained on: every schema draws the same line on the same board. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { attempt } from '../attempt.ts'
import type { Script } from '../contract.ts'
import { parseAction } from './actions/index.ts'
import { actionAdapters } from './adapters/index.ts'
import { builtInGui } from '../../builtin/index.ts'

const gui = builtInGui({ trustTasks: false })

const directory = tempDir()

const load = async (schema: string) => {
  const path = join(directory, `${schema}.json`)
  // Without a drag, a click paints one square.
  const goal = ['miniwob', 'holo'].includes(schema) ? 'paint-square' : 'turn-dial'
  // Larger than Anthropic's: its pictures are shrunk, and its coordinates with them.
  const screen = { width: 1600, height: 1000 }
  writeFileSync(path, JSON.stringify({ app: 'sketch', goals: [goal], seeds: [1], schema, screen }))
  const [task] = await gui.load(path)
  if (task === undefined) throw new Error(schema)
  return task
}

describe.runIf(await requireDocker())('a gui task', () => {
  let sandbox: SandboxProvider
  const signal = new AbortController().signal
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  it.each(['anthropic-20251124', 'ui-tars', 'openai'])('is solved in the words of %s', async (schema) => {
    const task = await load(schema)
    const script = await gui.scripts.oracle(task)
    expect(await attempt({ environment: gui, task, script, sandbox, signal })).toMatchObject({
      status: 'scored',
      reward: 1,
    })
  })
})

describe('the scripts of a gui task', () => {
  it.each([...actionAdapters.keys()])('are in the words of %s', async (schema) => {
    const task = await load(schema)
    const computer = ({ steps }: Script) =>
      steps.flatMap((step) => ('tool' in step && step.tool === 'computer' ? [step.args] : []))
    const [act = {}] = computer((await gui.scripts.oracle(task)).script)
    const tool = gui.tools(task).find(({ name }) => name === 'computer')
    expect(tool?.description).toContain(schema)
    expect(parseAction(act, { width: 1600, height: 1000 })).toMatchObject({ ok: false })
  })
})
