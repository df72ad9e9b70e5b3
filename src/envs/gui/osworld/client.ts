import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import { actionAdapters } from '../adapters/index.ts'
import { quoted } from '../adapters/python-calls.ts'
import { type SingleAction, singleActionSchema } from '../actions/index.ts'
import type { Listing, Machine, WindowQuery } from './machine.ts'

const size = z.object({ width: z.number().positive(), height: z.number().positive() })
const place = z.tuple([z.number(), z.number()])
const executed = z.object({ output: z.string(), error: z.string(), returncode: z.number() })
const listing: z.ZodType<Listing> = z.lazy(() =>
  z.union([
    z.object({ type: z.literal('directory'), name: z.string(), children: z.array(listing) }),
    z.object({ type: z.literal('file'), name: z.string() }),
  ]),
)

const answerMs = 150_000

/**
 * A machine that OSWorld's server runs on, over HTTP (desktop_env/controllers/python.py and setup.py are its users there).
 * Input goes out as `pyautogui` calls, which is what that server understands. Throws `ENVIRONMENT_TOOL_FAILED` when the
 * machine does not answer or answers something else.
 */
export async function osworldMachine(url: string, o: { readonly timeoutMs?: number } = {}): Promise<Machine> {
  const base = url.replace(/\/+$/, '')
  const timeoutMs = o.timeoutMs ?? answerMs
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
    try {
      return await fetch(`${base}${path}`, { ...init, signal: AbortSignal.timeout(timeoutMs) })
    } catch (cause) {
      throw fault(`${base}${path} does not answer: ${String(cause)}`, cause)
    }
  }
  const post = (path: string, body: unknown) =>
    ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const form = (path: string, fields: Readonly<Record<string, string>>) =>
    ask(path, { method: 'POST', body: new URLSearchParams(fields) })
  const read = async <T>(path: string, response: Response, schema: z.ZodType<T>): Promise<T> => {
    const text = await response.text()
    if (!response.ok) throw fault(`${base}${path} answered ${response.status}: ${text.slice(0, 300)}`)
    try {
      return schema.parse(JSON.parse(text))
    } catch (cause) {
      throw fault(`${base}${path} answered something else: ${text.slice(0, 300)}`, cause)
    }
  }
  const python = async (code: string): Promise<void> => {
    const line = `import pyautogui; import time; pyautogui.FAILSAFE = False; ${code}`
    const body = { command: ['python', '-c', line], shell: false }
    const { returncode, error } = await read('/execute', await post('/execute', body), executed)
    if (returncode !== 0) throw fault(`${base}/execute could not do ${code.slice(0, 200)}: ${error.slice(-300)}`)
  }
  const onWindow = async (path: string, { name, strict, byClass }: WindowQuery): Promise<boolean> =>
    (await post(path, { window_name: name, strict, by_class: byClass })).ok
  const screen = await read('/screen_size', await ask('/screen_size', { method: 'POST' }), size)

  return {
    screen,
    hasSudo: true,
    execute: async (command, { shell = false } = {}) =>
      read('/execute', await post('/execute', { command, shell }), executed),
    launch: async (command, shell) => {
      const response = await post('/setup/launch', { command, shell })
      if (!response.ok) throw fault(`${base}/setup/launch answered ${response.status}: ${await response.text()}`)
    },
    upload: async (path, data) => {
      const body = new FormData()
      body.set('file_path', path)
      body.set('file_data', new Blob([new Uint8Array(data)]), path.split('/').at(-1) ?? 'file')
      const response = await ask('/setup/upload', { method: 'POST', body })
      if (!response.ok) throw fault(`${base}/setup/upload answered ${response.status}: ${await response.text()}`)
    },
    file: async (path) => {
      const response = await form('/file', { file_path: path })
      if (response.status === 404) return null
      if (!response.ok) throw fault(`${base}/file answered ${response.status}: ${await response.text()}`)
      return Buffer.from(await response.arrayBuffer())
    },
    list: async (path) => {
      const response = await post('/list_directory', { path })
      if (response.status === 400) return null
      return (await read('/list_directory', response, z.object({ directory_tree: listing }))).directory_tree
    },
    activateWindow: (window) => onWindow('/setup/activate_window', window),
    closeWindow: (window) => onWindow('/setup/close_window', window),
    windowSize: async (className) => {
      const response = await form('/window_size', { app_class_name: className })
      return response.ok ? read('/window_size', response, size) : null
    },
    pointer: async () => {
      const [x, y] = await read('/cursor_position', await ask('/cursor_position'), place)
      return { x, y }
    },
    screenshot: async () => {
      const response = await ask('/screenshot')
      const data = new Uint8Array(await response.arrayBuffer())
      if (response.ok && data[0] === 0x89) return data
      throw fault(`${base}/screenshot answered ${response.status} with no PNG`)
    },
    accessibility: async () =>
      (await read('/accessibility', await ask('/accessibility'), z.object({ AT: z.string() }))).AT,
    terminal: async () =>
      (await read('/terminal', await ask('/terminal'), z.object({ output: z.string().nullable() }))).output,
    input: async (action) => {
      if (action.action === 'wait') await new Promise((resolve) => setTimeout(resolve, action.seconds * 1000))
      else await python(codeOf(action))
    },
    hold: async (what, down) => {
      if ('key' in what) await python(`pyautogui.${down ? 'keyDown' : 'keyUp'}(${quoted(what.key)})`)
      else await python(`pyautogui.${down ? 'mouseDown' : 'mouseUp'}(button=${quoted(what.button)})`)
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** A canonical input action as calls of `pyautogui`. Throws `TASK_UNSUPPORTED` for what that library has no call for. */
function codeOf(action: SingleAction): string {
  const held = 'keys' in action && action.action !== 'key' && action.action !== 'hold' ? action.keys : undefined
  const bare = held === undefined ? action : singleActionSchema.parse({ ...action, keys: undefined })
  const keys = (combination: string) => combination.split('+').map((key) => quoted(key.toLowerCase()))
  const around = (inner: string, combination: string) =>
    [
      ...keys(combination).map((key) => `pyautogui.keyDown(${key})`),
      inner,
      ...keys(combination)
        .toReversed()
        .map((key) => `pyautogui.keyUp(${key})`),
    ].join('; ')
  if (held !== undefined) return around(codeOf(bare), held)
  if (action.action === 'drag') {
    const [from, ...rest] = action.path
    const moves = rest.map(({ x, y }) => `pyautogui.moveTo(${x}, ${y})`)
    return [`pyautogui.moveTo(${from?.x}, ${from?.y})`, 'pyautogui.mouseDown()', ...moves, 'pyautogui.mouseUp()'].join(
      '; ',
    )
  }
  if (action.action === 'hold') return around(`time.sleep(${action.seconds})`, action.keys)
  if (action.action === 'key' && action.repeat > 1) {
    return Array.from({ length: action.repeat }, () => codeOf({ ...action, repeat: 1 })).join('; ')
  }
  if (action.action === 'scroll') {
    const { x, y, dx, dy } = action
    const turns = (pixels: number) => Math.sign(pixels) * Math.max(1, Math.round(Math.abs(pixels) / 120))
    return [
      `pyautogui.moveTo(${x}, ${y})`,
      ...(dy === 0 ? [] : [`pyautogui.scroll(${-turns(dy)})`]),
      ...(dx === 0 ? [] : [`pyautogui.hscroll(${turns(dx)})`]),
    ].join('; ')
  }
  const said = actionAdapters
    .get('osworld-pyautogui')
    ?.write(action, { screen: { width: 1e5, height: 1e5 }, pointer: null })
  if (typeof said === 'string') return said
  throw new PaddockError('TASK_UNSUPPORTED', `pyautogui has no call for ${action.action}`)
}

function fault(what: string, cause?: unknown): PaddockError {
  return new PaddockError('ENVIRONMENT_TOOL_FAILED', `The machine ${what}`, cause === undefined ? {} : { cause })
}
