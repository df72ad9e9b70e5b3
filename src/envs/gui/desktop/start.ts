import { randomBytes } from 'node:crypto'
import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import type { Screen } from '../actions/index.ts'
import { browserUser, CdpPipe } from '../browser/index.ts'
import { socketInBox } from './box-stream.ts'
import type { ReadRows } from './screen-pixels.ts'
import { framebufferDirectory, ScreenReader } from './screen-reader.ts'
import { XDisplay } from './x-display.ts'

const home = '/var/lib/browser'
const display = ':1'
/** What a program needs to find the X server. */
export const desktopEnv = { HOME: '/home/browser', DISPLAY: display, XAUTHORITY: `${home}/xauth`, TZ: 'UTC' }

/** What opens the X server that runs in a box. */
export async function serverCookie(box: Box): Promise<Buffer> {
  const { stdout } = await box.exec({ command: ['tail', '-c', '16', desktopEnv.XAUTHORITY], user: 'root', cwd: '/' })
  return Buffer.from(stdout)
}

/** The programs of a desktop in a box. */
export interface RunningDesktop extends AsyncDisposable {
  readonly display: XDisplay
  readonly rows: ReadRows
  readonly pipe: CdpPipe
}

/**
 * Starts X server, window manager and browser of the image `gui-desktop`, anew where they ran in this box before. Only the user of the desktop, and its owner on
 * the host, know the cookie that opens the server. A browser of a given width leaves the rest of the screen to others.
 * Throws `BROWSER_GONE`.
 */
export async function startDesktop(box: Box, screen: Screen, browserWidth: number | null): Promise<RunningDesktop> {
  const cookie = randomBytes(16)
  // A desktop that ran in this box before leaves nothing: no program, profile, download, clipboard or lock.
  await box.exec({
    command: `pkill -KILL -u ${browserUser}; rm -rf ${home} /home/browser /tmp/.X1-lock /tmp/.X11-unix; install -d -o ${browserUser} -g ${browserUser} -m 0700 ${home} /home/browser; install -o ${browserUser} -g ${browserUser} -m 0600 /dev/stdin ${home}/xauth`,
    stdin: xauthority(cookie),
    user: 'root',
    cwd: '/',
  })
  await using parts = new AsyncDisposableStack()
  const stop = new AbortController()
  parts.defer(() => stop.abort(new Error('the desktop was closed')))
  await startServer(box, screen, stop.signal)
  const environment = `export ${Object.entries(desktopEnv)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')}`
  const manager = box.exec(
    { ...long, command: `${environment}; exec openbox --sm-disable >/dev/null 2>&1` },
    { signal: stop.signal },
  )
  manager.catch(() => undefined)
  const reader = parts.use(new ScreenReader(box, screen.width))
  const line = `umask 077; ${environment}; exec /usr/lib/chromium/chromium ${switchesFor(screen, browserWidth).join(' ')}`
  const pipe = parts.use(
    new CdpPipe(box, { command: `${line} 3<&0 4>&1 </dev/null 1>&2`, user: browserUser, cwd: '/' }),
  )
  const stream = socketInBox(box, { path: '/tmp/.X11-unix/X1', user: browserUser })
  parts.defer(() => void stream.destroy())
  const opened = parts.use(await XDisplay.open(stream, cookie))
  const owned = parts.move()
  return {
    display: opened,
    rows: (first, count) => reader.rows(first, count),
    pipe,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const long = { user: browserUser, cwd: '/', timeoutMs: 7 * 24 * 3600_000, graceMs: 0, output: 'told' } as const

/** Resolves when the server takes connections, which it says by writing its number (Xserver(1), -displayfd). */
async function startServer(box: Box, { width, height }: Screen, signal: AbortSignal): Promise<void> {
  const ready = Promise.withResolvers<void>()
  let words = ''
  const line = `umask 077; mkdir -p ${framebufferDirectory}; exec Xvfb ${display} -screen 0 ${width}x${height}x24 -fbdir ${framebufferDirectory} -nolisten tcp -nocursor -noreset -auth ${home}/xauth -displayfd 1`
  const server = box.exec(
    {
      ...long,
      command: line,
      onStdout: () => ready.resolve(),
      onStderr: (chunk) => (words = (words + Buffer.from(chunk).toString('utf8')).slice(-500)),
    },
    { signal },
  )
  server.then(
    ({ kind }) => ready.reject(new PaddockError('BROWSER_GONE', `The X server ended (${kind}): ${words.trim()}`)),
    (error: unknown) => ready.reject(error),
  )
  await ready.promise
}

/** Switches of Chromium on a screen (chrome/common/chrome_switches.cc, 150); policies do the rest. */
function switchesFor({ width, height }: Screen, browserWidth: number | null): readonly string[] {
  return [
    '--no-sandbox',
    // Without it the browser warns of the switch above over every page.
    '--test-type',
    '--no-zygote',
    '--disable-gpu',
    // One process in place of three, and none that waits for work: a sixth less to do at the start, a third less memory.
    '--in-process-gpu',
    '--enable-features=NetworkServiceInProcess2',
    '--disable-dev-shm-usage',
    '--disable-extensions',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-breakpad',
    // As in the browser tier: pages for a person, frames in the page's own process.
    '--disable-blink-features=AutomationControlled',
    '--disable-site-isolation-trials',
    '--disable-features=Translate,MediaRouter,OptimizationHints,BackForwardCache,PaintHolding,SpareRendererForSitePerProcess,IsolateOrigins,site-per-process',
    '--no-first-run',
    '--no-default-browser-check',
    '--mute-audio',
    '--password-store=basic',
    '--force-color-profile=srgb',
    '--force-device-scale-factor=1',
    '--lang=en-US',
    '--renderer-process-limit=2',
    '--window-position=0,0',
    `--window-size=${browserWidth ?? width},${height}`,
    ...(browserWidth === null ? ['--start-maximized'] : []),
    `--user-data-dir=${home}/profile`,
    '--remote-debugging-pipe',
    'about:blank',
  ]
}

/** A file of one entry that is good for every host (libXau, AuWrite.c; family 65535 is FamilyWild). */
function xauthority(cookie: Buffer): Buffer {
  const counted = (bytes: Buffer) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  const parts = [Buffer.alloc(0), Buffer.from('1'), Buffer.from('MIT-MAGIC-COOKIE-1'), cookie]
  return Buffer.concat([Buffer.from([0xff, 0xff]), ...parts.map(counted)])
}
