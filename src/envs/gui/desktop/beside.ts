import { PaddockError } from '../../../core/index.ts'
import type { Box } from '../../../sandbox/index.ts'
import { browserUser } from '../browser/index.ts'
import type { Surface } from '../surface.ts'
import { socketInBox } from './box-stream.ts'
import { startProgram } from './rest.ts'
import { desktopEnv, serverCookie } from './start.ts'
import { XWindows } from './windows.ts'
import type { XDisplay } from './x-display.ts'
import { doXInput } from './x-input.ts'

/** Programs that can stand beside the browser; `rc.xml` of the image says where their windows are. */
export const programNames = ['files', 'terminal'] as const
export type Program = (typeof programNames)[number]

/** Longest wait for the programs at each step of a drag. */
const dragStepMs = 500

const user = 'agent'
const home = '/home/agent'
const env = { HOME: home, DISPLAY: desktopEnv.DISPLAY, XAUTHORITY: `${home}/.Xauthority`, USER: user, TZ: 'UTC' }

const programs: Readonly<Record<Program, { readonly className: string; readonly argv: readonly string[] }>> = {
  files: { className: 'Xfe', argv: ['xfe', '/workspace'] },
  // Its own prompt, because the shell's names the box, which differs from run to run.
  terminal: {
    className: 'XTerm',
    argv: [
      'env',
      'PS1=$ ',
      'xterm',
      '-name',
      'beside',
      '-T',
      'Terminal',
      '-fa',
      'DejaVu Sans Mono',
      '-fs',
      '11',
      '-e',
      'bash',
      '--norc',
    ],
  },
}

/** The width that the browser has where a program stands beside it, in pixels; `rc.xml` has the rest of 1280 by 800. */
export const browserWidth = 740
export const screenBeside = { width: 1280, height: 800 } as const

/**
 * A desktop with a program of the agent's beside its browser, which counts as at rest only when the program rests too. The
 * program runs as the agent's user, who may open the X server then: that is the mouse and the keyboard that the agent has
 * anyway. Throws `BROWSER_GONE`.
 */
export async function openBeside(
  box: Box,
  { surface, display }: { readonly surface: Surface; readonly display: XDisplay },
  name: Program,
): Promise<Surface> {
  const { className, argv } = programs[name]
  const granted = await box.exec({
    command: `install -o ${user} -g ${user} -m 0600 ${desktopEnv.XAUTHORITY} ${env.XAUTHORITY}`,
    user: 'root',
    cwd: '/',
  })
  if (granted.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${granted.why.detail}`)
  const stream = socketInBox(box, { path: '/tmp/.X11-unix/X1', user: browserUser })
  const windows = await XWindows.open(stream, await serverCookie(box))
  const program = startProgram(box, { argv, user, cwd: '/workspace', env })
  const end = async () => {
    await program[Symbol.asyncDispose]()
    windows.end()
    stream.destroy()
  }
  try {
    const over = program.ended.then((how) => {
      throw new PaddockError('BROWSER_GONE', `${className} ended before it had a window (${how})`)
    })
    await Promise.race([windows.opened(className), over])
  } catch (error) {
    await end()
    throw error
  }
  return {
    ...surface,
    front: () => windows.front('Chromium'),
    // A drag is a talk between programs: each step has to be taken before the next.
    input: (action) => doXInput(display, action, () => program.rest(dragStepMs)),
    settle: async (o = {}) => {
      const { capMs = 3000 } = o
      const from = performance.now()
      const passed = () => performance.now() - from
      for (;;) {
        const settled = await surface.settle({ ...o, capMs: Math.max(1, Math.round(capMs - passed())) })
        if (passed() >= capMs) return { ...settled, by: settled.by === 'dialog' ? 'dialog' : 'cap', ms: passed() }
        // What a program did after the screen had come to rest may just have been painted: look again.
        if ((await program.rest(capMs - passed())) === 'idle') return { ...settled, ms: passed() }
      }
    },
    [Symbol.asyncDispose]: async () => {
      await end()
      await surface[Symbol.asyncDispose]()
    },
  }
}
