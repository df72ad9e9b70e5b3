import type { IncomingMessage, ServerResponse } from 'node:http'
import { posix } from 'node:path'
import { z } from 'zod'
import { isPaddockError } from '../../../core/index.ts'
import { bodyOf, served } from '../../serving.ts'
import { type Answer, faultOf, fitted, formOf, json, jsonOf, maxBodyBytes, said, textIn } from './http.ts'
import type { Machine, MachineCommand } from './machine.ts'
import { drivesScreen, runPython, withoutPrefix } from './python.ts'
import { endRecording, startRecording } from './recording.ts'

const command = z.union([z.string(), z.array(z.string())])
const commandBody = z.object({ command: command.optional(), shell: z.boolean().default(false) })
const windowBody = z.object({
  window_name: z.string().optional(),
  strict: z.boolean().default(false),
  by_class: z.boolean().default(false),
})
const verification = z.object({ window_exists: z.string().optional(), command_success: z.string().optional() })
const verifiedBody = commandBody.extend({
  verification: verification.default({}),
  max_wait_time: z.number().default(10),
  check_interval: z.number().min(0.05).default(1),
})

/**
 * The HTTP server that OSWorld's controllers talk to (desktop_env/server/main.py; routes, members and status codes of the
 * copy in ljxpython/OSWorldUse at b5007a9), on any machine. Python about the screen is read and done as input, never run.
 * Not served: the browser's debugging port 9222 and VLC's 8080, which are servers of their own there.
 */
export function osworldHandler(machine: Machine): (request: IncomingMessage, response: ServerResponse) => void {
  let turn: Promise<unknown> = Promise.resolve()
  return (request, response) => {
    const before = turn
    // One after the other, as Flask's own server with one user sees them: a screenshot shows what was done before it.
    turn = (async () => {
      await before
      const answered = await answer(machine, request).catch(faultOf)
      response.writeHead(answered.status, { 'content-type': answered.type }).end(answered.body)
    })().catch(() => undefined)
  }
}

/** A running server. */
export interface OsworldServer extends AsyncDisposable {
  /** `http://host:port`. */
  readonly url: string
}

/** Serves {@link osworldHandler}. Port 0 takes a free one. Throws `PORT_IN_USE`. It has no authentication. */
export async function serveOsworld(
  machine: Machine,
  o: { readonly host?: string; readonly port?: number } = {},
): Promise<OsworldServer> {
  const { origin: url, ...running } = await served(osworldHandler(machine), o)
  return { url, ...running }
}

async function answer(machine: Machine, request: IncomingMessage): Promise<Answer> {
  const { pathname } = new URL(request.url ?? '/', 'http://machine')
  const route = `${request.method} ${pathname}`
  switch (route) {
    case 'GET /screenshot':
      return { status: 200, type: 'image/png', body: await machine.screenshot() }
    case 'GET /accessibility':
      return json({ AT: await machine.accessibility() })
    case 'GET /terminal':
      return json({ output: await machine.terminal(), status: 'success' })
    case 'GET /cursor_position': {
      const { x, y } = await machine.pointer()
      return json([x, y])
    }
    case 'GET /platform':
      return said('Linux')
    case 'POST /screen_size':
      return json(machine.screen)
    case 'POST /desktop_path': {
      const { output } = await machine.execute(['sh', '-c', 'test -d "$HOME/Desktop" && echo "$HOME/Desktop"'])
      return output === '' ? json({ error: 'desktop path not found' }, 404) : json({ desktop_path: output.trim() })
    }
    case 'POST /wallpaper':
      return said('Wallpaper file not found', 404)
    case 'POST /start_recording':
      return startRecording(machine)
    case 'POST /end_recording':
      return endRecording(machine)
  }
  const body = await bodyOf(request, maxBodyBytes)
  switch (route) {
    case 'POST /execute':
    case 'POST /setup/execute': {
      const asked = fitted(commandBody, jsonOf(body))
      const { returncode, output, error } = await machine.execute(asked.command ?? '', asked)
      return json({ status: 'success', output, error, returncode })
    }
    case 'POST /execute_with_verification':
    case 'POST /setup/execute_with_verification':
      return verified(machine, fitted(verifiedBody, jsonOf(body)))
    case 'POST /setup/launch': {
      const { command: given = '', shell } = fitted(commandBody, jsonOf(body))
      await machine.launch(given, shell)
      return said(`${typeof given === 'string' ? given : given.join(' ')} launched successfully`)
    }
    case 'POST /run_python':
      return runCode(machine, fitted(z.object({ code: z.string().default('') }), jsonOf(body)).code)
    case 'POST /run_bash_script':
      return runScript(machine, jsonOf(body))
    case 'POST /window_size': {
      const name = textIn(await formOf(request, body), 'app_class_name')
      if (name === null) return json({ error: 'app_class_name is required' }, 400)
      const size = await machine.windowSize(name)
      return size === null ? json({ error: `there is no window of class ${name}` }, 500) : json(size)
    }
    case 'POST /list_directory': {
      const { path } = fitted(z.object({ path: z.string().optional() }), jsonOf(body))
      if (path === undefined) return json({ error: "Missing 'path' parameter" }, 400)
      const tree = await machine.list(path)
      return tree === null
        ? json({ error: 'The provided path is not a directory' }, 400)
        : json({ directory_tree: tree })
    }
    case 'POST /file': {
      const path = textIn(await formOf(request, body), 'file_path')
      if (path === null) return json({ error: 'file_path is required' }, 400)
      const data = await machine.file(path)
      return data === null
        ? json({ error: 'File not found' }, 404)
        : { status: 200, type: 'application/octet-stream', body: data }
    }
    case 'POST /setup/upload': {
      const form = await formOf(request, body)
      const [path, file] = [textIn(form, 'file_path'), form.get('file_data')]
      if (path === null || !(file instanceof Blob)) return json({ error: 'file_path and file_data are required' }, 400)
      const data = new Uint8Array(await file.arrayBuffer())
      await machine.upload(path, data)
      return said(`File Uploaded: ${data.byteLength} bytes`)
    }
    case 'POST /setup/download_file':
      return said('Failed to download: a box has no network. Use /setup/upload.', 500)
    case 'POST /setup/open_file':
      return openFile(machine, jsonOf(body))
    case 'POST /setup/activate_window':
    case 'POST /setup/close_window': {
      const { window_name: name, strict, by_class: byClass } = fitted(windowBody, jsonOf(body))
      if (name === undefined) return said('window_name required', 400)
      const query = { name, strict, byClass }
      // As there: a window that is not there is no error.
      if (pathname.endsWith('close_window')) await machine.closeWindow(query)
      else await machine.activateWindow(query)
      return said(pathname.endsWith('close_window') ? 'Window closed successfully.' : 'Window activated successfully')
    }
    case 'POST /setup/change_wallpaper':
      return said('Failed to change wallpaper. Error: this desktop has none', 500)
  }
  return json({ error: `there is no route ${route}` }, 404)
}

async function verified(machine: Machine, asked: z.infer<typeof verifiedBody>): Promise<Answer> {
  const { returncode, output, error } = await machine.execute(asked.command ?? '', asked)
  const facts = { output, error, returncode }
  const { window_exists: window, command_success: line } = asked.verification
  if (window === undefined && line === undefined) return json({ status: 'success', ...facts })
  const from = performance.now()
  const passed = () => (performance.now() - from) / 1000
  do {
    const there =
      window === undefined || (await machine.activateWindow({ name: window, strict: false, byClass: false }))
    const held = line === undefined || (await machine.execute(line, { shell: true })).returncode === 0
    if (there && held) return json({ status: 'success', ...facts, verification: 'passed', wait_time: passed() })
    await new Promise((resolve) => setTimeout(resolve, asked.check_interval * 1000))
  } while (passed() < asked.max_wait_time)
  return json({ status: 'verification_failed', ...facts, verification: 'failed', wait_time: asked.max_wait_time }, 500)
}

async function runCode(machine: Machine, code: string): Promise<Answer> {
  if (code === '') return json({ status: 'error', message: 'Code not supplied!' }, 400)
  const { returncode, output, error } = drivesScreen(code)
    ? await runPython(machine, code).then((wrong) => ({
        returncode: wrong === null ? 0 : 1,
        output: '',
        error: wrong ?? '',
      }))
    : await machine.execute(['python3', '-c', withoutPrefix(code)])
  const message = [output, error].filter((text) => text !== '').join('\n')
  const status = returncode === 0 ? 'success' : 'error'
  return json({ status, message, need_more: false, output, error, return_code: returncode })
}

async function runScript(machine: Machine, given: unknown): Promise<Answer> {
  const shape = z.object({
    script: z.string().default(''),
    timeout: z.number().positive().default(100),
    working_dir: z.string().nullish(),
  })
  const { script, timeout, working_dir: directory } = fitted(shape, given)
  if (script === '') return json({ status: 'error', output: 'Script not supplied!', error: '', returncode: -1 }, 400)
  const line = ['bash', '-c', 'cd "$1" && exec timeout "$2" bash -c "$3" 2>&1', 'bash', directory ?? '.', `${timeout}`]
  const { returncode, output } = await machine.execute([...line, script])
  const late = returncode === 124
  const text = late ? `Script execution timed out after ${timeout} seconds` : output
  const status = returncode === 0 ? 'success' : 'error'
  return json({ status, output: text, error: '', returncode }, late ? 500 : 200)
}

/** A file by whatever the image opens it with, or a program by its name. */
async function openFile(machine: Machine, given: unknown): Promise<Answer> {
  const { path = '' } = fitted(z.object({ path: z.string().optional() }), given)
  if (path === '') return said('Path not supplied!', 400)
  const isFile = (await machine.file(path)) !== null
  const launched: MachineCommand = isFile ? ['xdg-open', path] : [path]
  try {
    await machine.launch(launched, false)
  } catch (error) {
    if (!isPaddockError(error) || error.code !== 'TASK_UNSUPPORTED') throw error
    return isFile
      ? said(`Failed to open ${path}. Error: ${error.message}`, 500)
      : said(`Application/file not found: ${path}`, 404)
  }
  const stem = posix.basename(path, posix.extname(path))
  for (let time = 0; time < 150; time += 1) {
    if (await machine.activateWindow({ name: stem, strict: false, byClass: !isFile })) {
      return said('File opened and window activated successfully')
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  return said(`Failed to find window for ${path} within 30 seconds.`, 500)
}
