import { type Box, gui, type TaskOf, z } from '../../../../kits/environment.ts'
import { type WebarenaData, webarenaDataSchema } from './data.ts'
import { readWebarena } from './load.ts'
import { seenArtifact, verifyWebarena } from './verify.ts'

/** Longest wait for a page that is looked at when an attempt is over. */
const lookMs = 10_000
const maxContent = 4 << 20

/**
 * Tasks on web sites of the user's, which the host reaches for the browser: config files of WebArena,
 * https://github.com/web-arena-x/webarena (Apache-2.0) at f62e0b9.
 */
export const webarena = gui.defineImporter({
  name: 'webarena',
  apiVersion: 1,
  verifierVersion: gui.verifierVersion,
  task: webarenaDataSchema,
  read: readWebarena,
  hostProgram: ({ data }) => gui.programOf(data.judge),
  attempt: attemptOf,
  setup: async ({ task, box }) => {
    const { page, browser, surface } = await attemptOf(task, box)
    const { cookies, start } = task.data
    if (cookies.length > 0) await page.send('Network.setCookies', { cookies }, z.unknown())
    for (const [at, url] of start.entries()) {
      if (at > 0) await browser.openTab()
      await browser.navigate(url)
      await surface.settle({ capMs: lookMs })
    }
    if (start.length > 1) await browser.activate(0)
  },
  systemPrompt: () => `${gui.prompt} Where something is asked for that cannot be found or done, answer "N/A".`,
  collect: async ({ task, box }) => {
    const session = await attemptOf(task, box)
    const record = session.record()
    const { url } = session.page
    const contents: string[] = []
    for (const target of task.data.targets) contents.push(await contentOf(target, session))
    // A site that failed while it was looked at is no fault of the agent.
    session.record()
    await session.close()
    return { items: [gui.toArtifact(record), seenArtifact({ url, contents })] }
  },
  verify: verifyWebarena,
  scripts: {
    oracle: async (task) => gui.oracleScript(task),
    cheats: async () => [
      { name: 'says-so', weight: 1, script: { steps: [gui.steps.look(), gui.steps.answer('done')] } },
    ],
  },
})

/** The text of a target, in the page in front or in a tab of its own; empty where the page has no such place. */
async function contentOf(
  target: WebarenaData['targets'][number],
  { browser, surface }: gui.GuiSession,
): Promise<string> {
  if (target.url !== 'last') {
    await browser.openTab()
    await browser.navigate(target.url)
    await surface.settle({ quietMs: 500, capMs: lookMs })
  }
  const look = async (code: string): Promise<string> => {
    const found = await browser.page.look(`() => ${code}`, null).catch((error: unknown) => {
      if (error instanceof gui.CdpRefusal) return ''
      throw error
    })
    return typeof found === 'string' ? found.slice(0, maxContent) : ''
  }
  for (const action of target.prep_actions) await look(action)
  return look(target.locator.trim() === '' ? 'document.documentElement.outerHTML' : `String(${target.locator})`)
}

function attemptOf(task: TaskOf<WebarenaData>, box: Box): Promise<gui.GuiSession> {
  return gui.openAttempt(box, task.data, () => gui.forwardSite({ start: 'about:blank', origins: task.data.origins }))
}
