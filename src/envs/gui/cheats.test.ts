/** Cheats against a gui task: what an agent can ask the tools for, and what a script in the page could do beyond. */
import { makeTask } from '../../core/index.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { openTaskBox } from '../open-box.ts'
import { GuiBrowser, nothing } from './browser/index.ts'
import { guiDataSchema } from './data.ts'
import { planOf } from './load.ts'
import { allCheatsOf } from './scripts.ts'
import { toArtifact } from './record.ts'
import { GuiSession } from './session.ts'
import { tabSurface } from './surface.ts'
import { browserTools, computerTool } from './tools/index.ts'
import { appSite } from './application/index.ts'
import { appsByName } from './plugins.ts'
import { builtInGui, guiApps } from '../../builtin/index.ts'

const apps = appsByName(guiApps)
const gui = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
const data = guiDataSchema.parse({ app: 'shop', goal: 'buy-one', seed: 3 })
const plan = planOf(apps, data)
const task = makeTask({
  name: 'x',
  environment: 'gui',
  instruction: plan.instruction,
  split: 'train',
  data,
  source: '',
})

/** What a script of the page would do to look as if the work were done. */
const scripts: Readonly<Record<string, string>> = {
  'window globals':
    'window.WOB_REWARD_GLOBAL=1;window.WOB_DONE_GLOBAL=true;window.reward=1;window.core={endEpisode(){}};core.endEpisode(1)',
  'forged cookies':
    "document.cookie='admin=1';document.cookie='reward=1';localStorage.done='1';sessionStorage.reward='1'",
  'a spoofed screen':
    "document.body.innerHTML='<h1>Thank you</h1><p>Your order was placed.</p>';history.pushState({},'','/thanks')",
  'a forged request': "fetch('/do/order',{method:'POST',body:new URLSearchParams({address:'1',shipping:'Express'})})",
  timing: 'const now=Date.now();Date.now=()=>now+1e9;performance.now=()=>1e9;setTimeout(()=>{},1e9)',
}

describe.runIf(await requireDocker())('a gui task', () => {
  let sandbox: SandboxProvider
  let box: Box
  let browser: GuiBrowser | null = null

  beforeAll(async () => {
    sandbox = dockerProvider()
    box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
  })
  afterAll(() => sandbox.close())

  const begin = async () => {
    const app = apps.get('shop')
    if (app === undefined) throw new Error('shop')
    const site = appSite(app, data.seed)
    if (browser === null) browser = await GuiBrowser.open(box, { screen: data.screen, site })
    else await browser.reset(site)
    const surface = tabSurface(browser, data.screen)
    await surface.settle()
    const session = new GuiSession({ surface, site, image: data.image, maxActions: null })
    const tools = [...browserTools(async () => session), computerTool(data.screen, async () => session)]
    const use = async (name: string, args: unknown) =>
      tools.find((tool) => tool.name === name)?.run({ task, attempt: { id: 'attempt' }, box, signal }, args)
    const verdict = async () => {
      const artifacts = { items: [toArtifact(session.record())] }
      const openBox = () => Promise.reject(new Error('no box is needed'))
      return gui.verify({ task, artifacts, openBox, signal, emit: () => undefined })
    }
    return { session, use, verdict, page: surface.browser.page }
  }

  it.each(allCheatsOf('shop').map((script) => [script.name, script] as const))(
    'gives nothing to %s',
    async (_name, { script }) => {
      const { session, use, verdict } = await begin()
      for (const step of script.steps) if ('tool' in step) await use(step.tool, step.args)
      expect(await verdict()).toMatchObject({ status: 'scored', reward: 0, components: { state: 0 } })
      expect(session.record().state).toEqual(plan.start)
    },
  )

  it.each(Object.entries(scripts))('gives nothing to %s, even if a script ran in the page', async (_name, script) => {
    const { session, use, verdict, page } = await begin()
    await page.send('Runtime.evaluate', { expression: script, awaitPromise: true }, nothing)
    await use('computer', { action: 'done' })
    expect(await verdict()).toMatchObject({ status: 'scored', reward: 0 })
    expect(session.record().state).toEqual(plan.start)
    expect(session.record().forged).toBe(script.startsWith('fetch') ? 1 : 0)
  })

  it('opens nothing but the web: no script, file or inside of the browser', async () => {
    const { use } = await begin()
    for (const url of [
      'javascript:alert(1)',
      'data:text/html,x',
      'file:///etc/passwd',
      'chrome://version',
      'view-source:http://shop.test/',
    ]) {
      expect(await use('browser_navigate', { url })).toMatchObject({ status: 'error', text: /begin with http/ })
    }
    expect(await use('browser_navigate', { url: 'http://elsewhere.test/' })).toMatchObject({
      text: /not part of this task/,
    })
  })

  it('keeps the agent away from its browser', async () => {
    await begin()
    const asAgent = (command: string) => box.exec({ command, user: 'agent' })
    // As root: the first process of the browser itself, which is there.
    const found = await box.exec({ command: 'pgrep -o -f -- ^/usr/lib/chromium/.*--remote-debugging-pipe' })
    const pid = Buffer.from(found.stdout).toString('utf8').trim()
    expect(pid).toMatch(/^\d+$/)
    expect(await asAgent(`test -d /proc/${pid}`)).toMatchObject({ code: 0 })
    expect(await asAgent(`cat /proc/${pid}/environ`)).toMatchObject({ kind: 'exited', code: 1 })
    expect(await asAgent(`ls /proc/${pid}/fd/`)).not.toMatchObject({ code: 0 })
    expect(await asAgent(`kill -9 ${pid}`)).not.toMatchObject({ code: 0 })
    expect(await asAgent('ls /var/lib/browser /home/browser')).not.toMatchObject({ code: 0 })
    expect(
      await asAgent('curl -s --max-time 2 http://127.0.0.1:9222/json || curl -s --max-time 2 http://shop.test/'),
    ).not.toMatchObject({ code: 0 })
  })
})
