import { posix } from 'node:path'
import { PaddockError } from '../../../core/index.ts'
import type { Box, ExecResult } from '../../../sandbox/index.ts'
import { keyOfName, type SingleAction } from '../actions/index.ts'
import { browserUser, type GuiPage, isInput } from '../browser/index.ts'
import { socketInBox } from '../desktop/box-stream.ts'
import { XWindows } from '../desktop/windows.ts'
import { XDisplay } from '../desktop/x-display.ts'
import type { Surface } from '../surface.ts'
import { accessibilityXml } from './accessibility.ts'
import type { CommandResult, Listing, Machine, MachineBrowser, MachineCommand, WindowQuery } from './machine.ts'
import { drivesScreen, runPython, withoutPrefix } from './python.ts'
import { windowNamed } from './window-named.ts'

/** The home that OSWorld's files name. Its owner is the user that programs on the desktop run as. */
export const machineHome = '/home/user'
const user = 'agent'
const environment = { HOME: machineHome, DISPLAY: ':1', XAUTHORITY: `${machineHome}/.Xauthority`, USER: user }
const commandMs = 120_000
const browserNames = new Set(['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser'])
/** What bridges the browser's debugging port in OSWorld's machines: ours has no port. */
const bridges = new Set(['socat'])

const listing = `import json, os, sys
def tree(path):
    found = {'type': 'directory', 'name': os.path.basename(path), 'children': []}
    for name in sorted(os.listdir(path)):
        full = os.path.join(path, name)
        found['children'].append(tree(full) if os.path.isdir(full) and not os.path.islink(full) else {'type': 'file', 'name': name})
    return found
print(json.dumps(tree(sys.argv[1])))`

/**
 * A desktop box of ours as a machine of OSWorld. Programs run as the user `agent` and may use the screen; the browser is
 * the one of the desktop, under its own user. Disposing it ends what belongs to it, not the box.
 */
export async function boxMachine(box: Box, surface: Surface): Promise<Machine & MachineBrowser> {
  const asRoot = async (command: string) => {
    const { stdout, ...result } = await box.exec({ command, user: 'root', cwd: '/' })
    if (result.kind !== 'exited' || result.code !== 0) throw failed(`set-up of the desktop's home`, result)
    return Buffer.from(stdout)
  }
  const folders = ['', 'Desktop', 'Documents', 'Downloads', 'Pictures'].map((name) => posix.join(machineHome, name))
  await asRoot(
    `install -d -o ${user} -g ${user} ${folders.join(' ')} && install -o ${user} -g ${user} -m 0600 /var/lib/browser/xauth ${environment.XAUTHORITY}`,
  )
  const cookie = await asRoot('tail -c 16 /var/lib/browser/xauth')
  const socket = { path: '/tmp/.X11-unix/X1', user: browserUser }
  const streams = [socketInBox(box, socket), socketInBox(box, socket)] as const
  const display = await XDisplay.open(streams[0], cookie)
  const windows = await XWindows.open(streams[1], cookie)

  const run = async (command: readonly string[] | string, root: boolean, keep: boolean): Promise<ExecResult> => {
    const result = await box.exec({
      command,
      user: root ? 'root' : user,
      cwd: machineHome,
      env: environment,
      timeoutMs: commandMs,
      ...(keep ? { background: 'keep' as const } : {}),
    })
    if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
    return result
  }
  const found = async (query: WindowQuery) => windowNamed(await windows.list(), query)
  const titleOf = async (page: GuiPage) => String(await page.look('() => document.title', null).catch(() => ''))

  const machine: Machine & MachineBrowser = {
    screen: surface.screen,
    hasSudo: false,
    execute: async (command, { shell = false, asRoot: root = false } = {}) => {
      const code = pythonIn(command)
      if (code !== null) {
        const wrong = await runPython(machine, code)
        return { returncode: wrong === null ? 0 : 1, output: '', error: wrong ?? '' }
      }
      return resultOf(await run(lineOf(command, shell), root, false))
    },
    launch: async (command, shell) => {
      const words = typeof command === 'string' ? command.trim().split(/\s+/) : command
      const name = posix.basename(words[0] ?? '')
      if (bridges.has(name)) return
      if (browserNames.has(name)) {
        const urls = words.filter((word) => /^https?:/.test(word))
        if (urls.length > 0) await machine.openTabs(urls)
        return
      }
      const program = shell ? programOf(command) : (words[0] ?? '')
      const there = await run(['bash', '-c', 'command -v "$1"', 'bash', program ?? 'true'], false, false)
      if (!(there.kind === 'exited' && there.code === 0)) {
        throw new PaddockError('TASK_UNSUPPORTED', `The desktop's image has no program ${program ?? ''}`, {
          fix: 'Give the set an image of your own that has it ("boxImage").',
        })
      }
      const line = lineOf(command, shell)
      const argv = typeof line === 'string' ? ['sh', '-c', line] : line
      await run(['sh', '-c', '"$@" >/dev/null 2>&1 </dev/null &', 'sh', ...argv], false, true)
    },
    upload: async (path, data) => {
      const at = pathOf(path)
      await run(['mkdir', '-p', posix.dirname(at)], false, false)
      const owner = { uid: 1000, gid: 1000, mode: 0o644 }
      await box.putFiles(posix.dirname(at), [{ path: posix.basename(at), data, ...owner }])
    },
    file: async (path) => {
      const { found: there, entries } = await box.getFiles(pathOf(path))
      const [entry] = entries
      return there && entry?.type === 'file' ? Buffer.from(entry.data) : null
    },
    list: async (path) => {
      const result = await run(['python3', '-c', listing, pathOf(path)], false, false)
      // Our own program printed it; a file's name is the only thing in it that is not ours, and it is escaped.
      return result.kind === 'exited' && result.code === 0 ? (JSON.parse(textOf(result.stdout)) as Listing) : null
    },
    activateWindow: async (query) => {
      const window = await found(query)
      if (window !== null) await windows.raise(window.id)
      await surface.settle()
      return window !== null
    },
    closeWindow: async (query) => {
      const window = await found(query)
      if (window !== null) await windows.close(window.id)
      await surface.settle()
      return window !== null
    },
    windowSize: async (className) => {
      const window = await found({ name: className, strict: false, byClass: true })
      if (window === null) return null
      const { width, height } = await windows.place(window.id)
      return { width, height }
    },
    pointer: () => windows.pointer(),
    screenshot: async () => (await surface.picture({ format: 'png', scale: 1 })).data,
    accessibility: async () => {
      const listed = await windows.list()
      const placed = await Promise.all(
        listed.map(async (window) => ({ ...window, place: await windows.place(window.id) })),
      )
      const { page } = surface.browser
      return accessibilityXml({
        windows: placed,
        page,
        title: await titleOf(page),
        onScreen: (point) => surface.onScreen(point),
      })
    },
    terminal: async () => null,
    input: (action: SingleAction) => act(surface, action),
    hold: async (what, down) => {
      if ('button' in what) display.button({ left: 1, middle: 2, right: 3 }[what.button], down)
      else {
        const key = keyOfName(what.key)
        if (key === null) throw new PaddockError('BODY_INVALID_SHAPE', `There is no key ${what.key}`)
        display.key(key, down)
      }
      await display.sync()
    },
    tabs: async () => {
      const { page, tabs } = surface.browser
      const ordered = [page, ...tabs.filter((tab) => tab !== page)]
      return Promise.all(ordered.map(async (tab) => ({ url: tab.url, title: await titleOf(tab) })))
    },
    front: async () => {
      const { page } = surface.browser
      const content = String(await page.look('() => document.documentElement.outerHTML', null))
      return { url: page.url, title: await titleOf(page), content }
    },
    openTabs: async (urls) => {
      const { browser } = surface
      for (const [at, url] of urls.entries()) {
        const fresh = browser.tabs.length === 1 && (browser.page.url === 'about:blank' || at === 0)
        if (!fresh) await browser.openTab()
        await browser.navigate(url)
        await surface.settle()
      }
    },
    closeTabs: async (match) => {
      const { browser } = surface
      for (const tab of browser.tabs.filter(({ url }) => match(url))) {
        await browser.closeTab(browser.tabs.indexOf(tab))
      }
    },
    [Symbol.asyncDispose]: async () => {
      windows.end()
      await display[Symbol.asyncDispose]()
      for (const stream of streams) stream.destroy()
    },
  }
  return machine
}

/** `asRoot` of a set-up step: what it asks sudo for is done as root, since a box has no sudo. */
export function withoutSudo(command: string): string | null {
  if (!/\bsudo\b/.test(command)) return null
  return command.replaceAll(/(?:echo\s+(?:"[^"]*"|'[^']*'|\S+)\s*\|\s*)?\bsudo\s+(?:-S\s+)?/g, '')
}

async function act(surface: Surface, action: SingleAction): Promise<void> {
  if (isInput(action)) {
    await surface.input(action)
    await surface.settle({ quietMs: 30, capMs: 1000 })
  } else if (action.action === 'wait') {
    await new Promise((resolve) => setTimeout(resolve, action.seconds * 1000))
  }
}

/** The code of a command that is Python about the screen; null for any other. */
function pythonIn(command: MachineCommand): string | null {
  const [program = '', flag, code = ''] = typeof command === 'string' ? splitWords(command) : command
  return isPython(program) && flag === '-c' && drivesScreen(code) ? code : null
}

function isPython(program: string): boolean {
  return /^python3?$/.test(posix.basename(program))
}

/** As `subprocess.run` of OSWorld's server takes a command: `~/` is the home, `python` is the only Python there is. */
function lineOf(command: MachineCommand, shell: boolean): readonly string[] {
  if (shell) return ['bash', '-c', typeof command === 'string' ? command : (command[0] ?? '')]
  const words = typeof command === 'string' ? splitWords(command) : command
  const [program = 'true', ...rest] = words.map((word) =>
    word === '~' || word.startsWith('~/') ? machineHome + word.slice(1) : word,
  )
  if (!isPython(program)) return [program, ...rest]
  return ['python3', ...rest.map((word, at) => (rest[at - 1] === '-c' ? withoutPrefix(word) : word))]
}

/** The program that a line for a shell begins with; null where more than its name stands there. */
function programOf(command: MachineCommand): string | null {
  const line = typeof command === 'string' ? command : (command[0] ?? '')
  const [first = ''] = line.trim().split(/\s+/)
  return /^[\w./+-]+$/.test(first) ? first : null
}

/** Words of a line with quotes, as Python's `shlex.split` gives them. */
function splitWords(line: string): readonly string[] {
  return Array.from(line.matchAll(/(?:[^\s'"]+|'[^']*'|"(?:[^"\\]|\\.)*")+/g), ([word]) =>
    word.replaceAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"/g, (_, single?: string, double?: string) =>
      single === undefined ? (double ?? '').replaceAll(/\\(["\\])/g, '$1') : single,
    ),
  )
}

function pathOf(path: string): string {
  const home = path.replace(/^~(?=\/|$)/, machineHome).replaceAll(/\$\{?HOME\}?/g, machineHome)
  return posix.resolve(machineHome, home)
}

function resultOf(result: ExecResult): CommandResult {
  const [output, error] = [textOf(result.stdout), textOf(result.stderr)]
  if (result.kind === 'exited') return { returncode: result.code, output, error }
  const why = result.kind === 'timed_out' ? `timed out after ${commandMs / 1000} s` : result.kind
  return { returncode: -1, output, error: `${error}${error === '' ? '' : '\n'}${why}` }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}

function failed(what: string, result: { readonly kind: string; readonly stderr: Uint8Array }): PaddockError {
  return new PaddockError('ENVIRONMENT_TOOL_FAILED', `${what}: ${result.kind} ${textOf(result.stderr).trim()}`)
}
