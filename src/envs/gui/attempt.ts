import { PaddockError } from '../../core/index.ts'
import { type Box, type ImageRecipe, sandboxSource } from '../../sandbox/index.ts'
import type { BoxNeeds, Tool } from '../contract.ts'
import { adapterOf } from './adapters/index.ts'
import { GuiBrowser } from './browser/index.ts'
import type { GuiData } from './data.ts'
import { desktopSurface, type Program } from './desktop/index.ts'
import { GuiSession, sessionOf } from './session.ts'
import type { TaskSite } from './site.ts'
import { tabSurface } from './surface.ts'
import { adaptedTool, browserTools, clipboardTool, computerTool, fileTools, pictureScale } from './tools/index.ts'

/** How a task is shown, whatever its application: what all formats of gui tasks have in common. */
export type Shown = Pick<GuiData, 'tier' | 'screen' | 'image' | 'schema' | 'maxActions'>

/** What an agent is told of the tools, before any task. */
export const guiPrompt =
  'You use a web browser to do what the user asks. Look at the page with `browser_snapshot` or with a screenshot of ' +
  '`computer`, act step by step, and look at what came of it. When everything is done, end with `computer` and action ' +
  '"done"; where something is asked for, give it with action "answer" instead, once. Do nothing that was not asked for.'

/** The tools of an attempt, with `computer` in the words of the schema that the task names. */
export function guiTools({ screen, schema }: Shown, session: (box: Box) => Promise<GuiSession>): readonly Tool[] {
  const of = ({ box }: { readonly box: Box }) => session(box)
  const adapter = adapterOf(schema)
  const computer = adapter === null ? computerTool(screen, of) : adaptedTool(adapter, screen, of)
  return [...browserTools(of), clipboardTool(of), ...fileTools(of), computer]
}

/**
 * The attempt in this box, opened at first use on what `site` serves. Throws `BOX_DEAD` when the box is gone,
 * `BROWSER_GONE` when its browser does not start.
 */
export async function openAttempt(
  box: Box,
  shown: Shown & { readonly beside?: Program | null },
  site: () => TaskSite,
): Promise<GuiSession> {
  const death = await Promise.race([box.died, Promise.resolve(null)])
  if (death !== null) throw new PaddockError('BOX_DEAD', `The box died: ${death.detail}`)
  return sessionOf(box, async () => {
    const { tier, screen, schema, maxActions } = shown
    const adapter = adapterOf(schema)
    const image = adapter === null ? shown.image : { ...shown.image, scale: pictureScale(adapter, screen) }
    const served = site()
    const surface =
      tier === 'desktop'
        ? await desktopSurface(box, { screen, site: served, beside: shown.beside ?? null })
        : tabSurface(await GuiBrowser.open(box, { screen, site: served }), screen)
    await surface.settle()
    return new GuiSession({ surface, site: served, image, maxActions })
  })
}

/** The box of a tier. */
export function guiBox(tier: GuiData['tier']): BoxNeeds {
  return {
    image: images[tier],
    // Root, so that the browser can be another user than the agent's programs; nothing of the agent's runs as root.
    profile: 'root',
    workdir: '/workspace',
    user: 'agent',
    env: {},
    memoryMb: 1536,
    network: 'none',
    agentTimeoutMs: null,
    verifyTimeoutMs: null,
  }
}

const images: Readonly<Record<GuiData['tier'], ImageRecipe>> = {
  browser: { kind: 'dockerfile', name: 'gui-browser', dockerfile: sandboxSource('gui-browser/Dockerfile') },
  desktop: {
    kind: 'dockerfile',
    name: 'gui-desktop',
    dockerfile: sandboxSource('gui-desktop/Dockerfile'),
    context: ['policy.json', 'rc.xml', 'xferc'].map((path) => ({ path, data: sandboxSource(`gui-desktop/${path}`) })),
  },
}
