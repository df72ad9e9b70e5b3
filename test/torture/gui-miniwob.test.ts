/**
 * Every page of a checkout of miniwob-plusplus: it loads, starts on its seed, says what it asks for, and its end in time
 * reaches the host. `MINIWOB_DIR` names a real one; without it, the pages are those of our fixture.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTaskBox } from '../../src/envs/index.ts'
import { GuiBrowser } from '../../src/envs/gui/browser/index.ts'
import { miniwobDataSchema } from '../../src/envs/gui/importers/miniwob/data.ts'
import { writeCheckout } from '../../src/envs/gui/importers/miniwob/miniwob.fixture.ts'
import { miniwobSite } from '../../src/envs/gui/importers/miniwob/site.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { builtInGui } from '../../src/builtin/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const gui = builtInGui({ trustTasks: false })

const fixture = tempDir()
writeCheckout(fixture)
const all = await gui.load(process.env['MINIWOB_DIR'] ?? fixture)
const tasks = all.filter(({ name }) => name.endsWith('-1'))

describe.runIf(await requireDocker())('a page of MiniWoB++', () => {
  let sandbox: SandboxProvider
  let box: Box
  let browser: GuiBrowser | null = null
  beforeAll(async () => {
    sandbox = dockerProvider()
    const [first] = tasks
    if (first === undefined) throw new Error('no page')
    box = await openTaskBox(sandbox, gui.box(first), {
      labels: { role: 'probe' },
      signal: new AbortController().signal,
    })
  })
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]()
    await sandbox.close()
  })

  it.each(tasks.map((task) => ({ name: task.name, task })))('$name', async ({ task }) => {
    // Long enough for pages that load a web site into a frame before they are ready.
    const seconds = task.name.startsWith('flight-') ? 4 : 0.5
    const data = { ...miniwobDataSchema.parse(task.data), seconds }
    const site = miniwobSite(task.source, data)
    if (browser === null) browser = await GuiBrowser.open(box, { screen: data.screen, site })
    else await browser.reset(site)
    await site.started(60_000)
    await browser.page.when(() => site.state().end !== null)
    expect(site.state().utterance).not.toBe('')
    expect(site.state().end).toMatchObject({ raw: -1, reason: 'timed out' })
    expect(site.forged).toBe(0)
  })
})
