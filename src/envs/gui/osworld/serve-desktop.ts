import type { SandboxProvider } from '../../../sandbox/index.ts'
import { openTaskBox } from '../../open-box.ts'
import type { Screen } from '../actions/index.ts'
import { guiBox } from '../attempt.ts'
import { desktopSurface } from '../desktop/index.ts'
import { forwardSite } from '../importer/index.ts'
import { boxMachine } from './box-machine.ts'
import { type OsworldServer, serveOsworld } from './server.ts'

export interface DesktopOptions {
  readonly screen: Screen
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** Origins of web sites that its browser may reach, by the host. */
  readonly sites: readonly string[]
  readonly signal: AbortSignal
  readonly onProgress?: (line: string) => void
}

/**
 * A desktop in a box of its own, behind OSWorld's HTTP API, until it is disposed. Throws `PORT_IN_USE`, `BROWSER_GONE` and what
 * boxes throw.
 */
export async function serveDesktop(sandbox: SandboxProvider, o: DesktopOptions): Promise<OsworldServer> {
  const { onProgress, signal } = o
  const opened: AsyncDisposable[] = []
  const open = async <T extends AsyncDisposable>(made: Promise<T>): Promise<T> => {
    const one = await made
    opened.unshift(one)
    return one
  }
  const close = async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]()
  }
  try {
    const box = await open(
      openTaskBox(sandbox, guiBox('desktop'), {
        labels: { role: 'probe' },
        signal,
        ...(onProgress === undefined ? {} : { onProgress }),
      }),
    )
    const site = forwardSite({ start: 'about:blank', origins: o.sites })
    const surface = await open(desktopSurface(box, { screen: o.screen, site }))
    const machine = await open(boxMachine(box, surface))
    const { url } = await open(serveOsworld(machine, o))
    return { url, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}
