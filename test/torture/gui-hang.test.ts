/** A page that hangs for ever: the browser's silence is a fault of ours, never a reward. It takes as long as we wait. */
import { expect, it } from 'vitest'
import { GuiBrowser } from '../../src/envs/gui/browser/index.ts'
import { guiDataSchema } from '../../src/envs/gui/data.ts'
import { GuiSession } from '../../src/envs/gui/session.ts'
import { tabSurface } from '../../src/envs/gui/surface.ts'
import { browserTools } from '../../src/envs/gui/tools/index.ts'
import { openTaskBox } from '../../src/envs/index.ts'
import { makeTask } from '../../src/core/index.ts'
import { dockerProvider } from '../../src/sandbox/index.ts'
import { appSite } from '../../src/envs/gui/application/index.ts'
import { appsByName } from '../../src/envs/gui/plugins.ts'
import { builtInGui, guiApps } from '../../src/builtin/index.ts'

const apps = appsByName(guiApps)
const gui = builtInGui({ trustTasks: false })

const screen = { width: 800, height: 600 }
const signal = new AbortController().signal

it('says infra', async () => {
  const data = guiDataSchema.parse({ app: 'shop', goal: 'price', seed: 1 })
  const task = makeTask({ name: 'x', environment: 'gui', instruction: 'x', split: 'train', data, source: '' })
  const app = apps.get('shop')
  if (app === undefined) throw new Error('shop')
  await using sandbox = dockerProvider()
  await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
  const page = '<!doctype html><button onclick="for(;;);">Hang</button>'
  const serve = () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: page })
  const site = { ...appSite(app, 1), serve }
  await using browser = await GuiBrowser.open(box, { screen, site, answerMs: 5_000 })
  const surface = tabSurface(browser, screen)
  await surface.settle()
  const session = new GuiSession({ surface, site, image: { format: 'png', scale: 1 }, maxActions: null })
  const use = (name: string, args: unknown) =>
    browserTools(async () => session)
      .find((tool) => tool.name === name)
      ?.run({ task, attempt: { id: 'attempt' }, box, signal }, args)
  await use('browser_click', { target: 'button "Hang"' })
  expect(await use('browser_snapshot', {})).toMatchObject({ status: 'infra', text: /does not answer/ })
})
