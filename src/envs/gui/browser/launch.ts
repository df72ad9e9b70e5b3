import type { Box } from '../../../sandbox/index.ts'
import { CdpPipe } from './cdp-pipe.ts'

/** The user of `sandboxes/gui-*` that the browser runs as; the agent's programs run as another. */
export const browserUser = 'browser'

/**
 * Switches of the browser (chrome/common/chrome_switches.cc, headless/app/headless_shell_switches.cc, 150). Boxes have no
 * user namespaces, hence no sandbox of its own: the box is the sandbox. Everything that would call home is off, and
 * rendering does not depend on the machine.
 */
const switches = [
  '--headless',
  '--no-sandbox',
  '--no-zygote',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-extensions',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  '--disable-breakpad',
  // Pages are to be what they are for a person.
  '--disable-blink-features=AutomationControlled',
  // Frames of all origins are in the page's own process, where they are served and read.
  '--disable-site-isolation-trials',
  '--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,BackForwardCache,PaintHolding,IsolateOrigins,site-per-process',
  '--no-first-run',
  '--mute-audio',
  '--hide-scrollbars',
  '--force-color-profile=srgb',
  '--font-render-hinting=none',
  '--lang=en-US',
  '--renderer-process-limit=2',
  '--user-data-dir=/var/lib/browser/profile',
  '--remote-debugging-pipe',
  'about:blank',
]

/** Starts the browser of the image `gui-browser` in this box. */
export function launchBrowser(box: Box, o: { readonly answerMs?: number } = {}): CdpPipe {
  const line = `umask 077; export HOME=/home/browser TZ=UTC; exec /usr/lib/chromium/chromium-headless-shell ${switches.join(' ')}`
  return new CdpPipe(box, { command: `${line} 3<&0 4>&1 </dev/null 1>&2`, user: browserUser, cwd: '/', ...o })
}
