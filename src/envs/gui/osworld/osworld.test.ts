/** The HTTP API of OSWorld on a desktop box, and our client of them: each proves the other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../../sandbox/index.ts'
import { requireDocker } from '../../../testing/sandbox/index.ts'
import { openTaskBox } from '../../open-box.ts'
import { guiBox } from '../attempt.ts'
import { desktopSurface } from '../desktop/index.ts'
import type { Surface } from '../surface.ts'
import {
  boxMachine,
  drivesScreen,
  type Machine,
  osworldMachine,
  type OsworldServer,
  readPython,
  serveOsworld,
} from './index.ts'

const prefix = 'import pyautogui; import time; pyautogui.FAILSAFE = False; '

describe('Python of OSWorld', () => {
  it('is read where it is about the screen, and nowhere else', () => {
    expect(drivesScreen(`${prefix}pyautogui.click(1, 2)`)).toBe(true)
    expect(drivesScreen(`${prefix}import platform; print(platform.system())`)).toBe(false)
    // desktop_env/controllers/python.py, execute_action: MOVE_TO and DRAG_TO
    expect(readPython(`${prefix}pyautogui.moveTo(3, 4, 0.7, pyautogui.easeInQuad)`)).toMatchObject({
      ok: true,
      steps: [{ kind: 'here', text: 'pyautogui.moveTo(3, 4, 0.7)' }],
    })
    expect(readPython(`${prefix}pyautogui.dragTo(5, 6, duration=1.0, button='left', mouseDownUp=True)`)).toMatchObject({
      ok: true,
      steps: [{ text: 'pyautogui.dragTo(5, 6, duration=1, button="left", mouseDownUp=True)' }],
    })
    expect(readPython("pyautogui.keyDown('shift'); pyautogui.mouseUp(button='right')")).toMatchObject({
      ok: true,
      steps: [
        { kind: 'hold', what: { key: 'shift' }, down: true },
        { kind: 'hold', what: { button: 'right' }, down: false },
      ],
    })
    expect(readPython(`pyautogui.click(__import__('os').getpid(), 1)`)).toMatchObject({
      ok: false,
      error: /literal|only/,
    })
    expect(readPython(`[pyautogui.click(1, 1) for _ in range(3)]`)).toMatchObject({ ok: false })
  })
})

describe.runIf(await requireDocker())('a desktop box with the HTTP API of OSWorld', () => {
  const typed: string[] = []
  let sandbox: SandboxProvider
  let box: Box
  let surface: Surface
  let own: Awaited<ReturnType<typeof boxMachine>>
  let server: OsworldServer
  let machine: Machine
  beforeAll(async () => {
    sandbox = dockerProvider()
    box = await openTaskBox(sandbox, guiBox('desktop'), {
      labels: { role: 'probe' },
      signal: new AbortController().signal,
    })
    const page = `<!doctype html><title>Form</title><body style="margin:0"><input autofocus aria-label="Name"
      style="position:fixed;inset:0;width:100%;font-size:30px" oninput="fetch('/typed?'+encodeURIComponent(value))">`
    surface = await desktopSurface(box, {
      screen: { width: 800, height: 600 },
      site: {
        start: 'http://form.test/',
        serve: ({ url }) => {
          if (url.pathname === '/typed') typed.push(decodeURIComponent(url.search.slice(1)))
          return { status: 200, headers: { 'content-type': 'text/html' }, body: page }
        },
      },
    })
    await surface.settle()
    own = await boxMachine(box, surface)
    server = await serveOsworld(own)
    machine = await osworldMachine(server.url)
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    await own[Symbol.asyncDispose]()
    await surface[Symbol.asyncDispose]()
    await sandbox.close()
  })
  const raw = async (path: string, init?: RequestInit) => {
    const response = await fetch(server.url + path, init)
    return { status: response.status, text: await response.text() }
  }
  const json = (path: string, body: object) =>
    raw(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

  it('takes input as pyautogui and shows what came of it', async () => {
    await machine.input({ action: 'click', x: 300, y: 400 })
    await machine.input({ action: 'type', text: `It's <5> "\\ é` })
    await machine.hold({ key: 'shift' }, true)
    await machine.input({ action: 'key', keys: 'a', repeat: 2 })
    await machine.hold({ key: 'shift' }, false)
    await surface.browser.page.when(() => typed.at(-1)?.endsWith('AA') ?? false)
    expect(typed.at(-1)).toBe(`It's <5> "\\ éAA`)
    expect(await machine.pointer()).toEqual({ x: 300, y: 400 })
    await machine.input({
      action: 'drag',
      path: [
        { x: 10, y: 300 },
        { x: 200, y: 310 },
      ],
    })
    expect(await machine.pointer()).toEqual({ x: 200, y: 310 })
    expect(machine.screen).toEqual({ width: 800, height: 600 })
    expect(
      Buffer.from(await machine.screenshot())
        .subarray(1, 4)
        .toString('latin1'),
    ).toBe('PNG')
    const tree = await machine.accessibility()
    expect(tree).toMatch(/<application name="Chromium"><frame name="Form[^>]*st:active="true"/)
    expect(tree).toMatch(/<entry name="Address and search bar"[^>]*>http:\/\/form\.test\/<\/entry>/)
    expect(tree).toMatch(
      /<entry name="Name"[^>]*cp:screencoord="\(\d+, \d+\)" cp:size="\(\d+, \d+\)">It's &lt;5&gt; &quot;/,
    )
  })

  it('runs commands, keeps files and lists folders as the user of the desktop', async () => {
    expect(await machine.execute(['sh', '-c', 'id -un; pwd >&2; exit 3'])).toEqual({
      returncode: 3,
      output: 'agent\n',
      error: '/home/user\n',
    })
    expect(await machine.execute('echo "$HOME" ~', { shell: true })).toMatchObject({
      output: '/home/user /home/user\n',
    })
    await machine.upload('~/Desktop/notes/a.txt', Buffer.from('hällo\n'))
    expect((await machine.file('/home/user/Desktop/notes/a.txt'))?.toString('utf8')).toBe('hällo\n')
    expect(await machine.file('/home/user/none')).toBeNull()
    expect(await machine.list('/home/user/Desktop')).toEqual({
      type: 'directory',
      name: 'Desktop',
      children: [{ type: 'directory', name: 'notes', children: [{ type: 'file', name: 'a.txt' }] }],
    })
    expect(await machine.list('/home/user/none')).toBeNull()
  })

  it('opens, finds, activates and closes windows', async () => {
    const window = { name: 'my term', strict: false, byClass: false }
    await machine.launch(['xterm', '-T', 'My Term'], false)
    const there = await json('/setup/execute_with_verification', {
      command: ['true'],
      verification: { window_exists: 'my term', command_success: 'true' },
      check_interval: 0.1,
    })
    expect(there).toMatchObject({ status: 200, text: expect.stringContaining('"verification":"passed"') })
    expect(await own.activateWindow(window)).toBe(true)
    expect(await machine.windowSize('xterm')).toMatchObject({ width: expect.any(Number) })
    expect(await own.closeWindow({ ...window, name: 'My Term', strict: true })).toBe(true)
    const gone = 'for n in $(seq 1000); do pgrep xterm >/dev/null || exit 0; sleep 0.05; done; exit 1'
    expect(await machine.execute(gone, { shell: true })).toMatchObject({ returncode: 0 })
    expect(await machine.windowSize('xterm')).toBeNull()
    await expect(machine.launch(['no-such-program'], false)).rejects.toThrow(/no program no-such-program/)
  })

  it('opens and closes tabs of its browser', async () => {
    await own.openTabs(['http://form.test/one', 'http://form.test/two'])
    expect((await own.tabs()).map(({ url }) => url).toSorted()).toEqual([
      'http://form.test/one',
      'http://form.test/two',
    ])
    expect(await own.front()).toMatchObject({ title: 'Form', url: 'http://form.test/two', content: /autofocus/ })
    await own.closeTabs((url) => url.endsWith('/two'))
    expect(await own.tabs()).toMatchObject([{ url: 'http://form.test/one' }])
  })

  it('answers as OSWorld does, also where it refuses', async () => {
    expect(await raw('/platform')).toEqual({ status: 200, text: 'Linux' })
    expect(await raw('/terminal')).toEqual({ status: 200, text: '{"output":null,"status":"success"}' })
    expect(await raw('/file', { method: 'POST', body: new URLSearchParams({ path: 'x' }) })).toEqual({
      status: 400,
      text: '{"error":"file_path is required"}',
    })
    expect(await json('/run_bash_script', { script: 'echo a; echo b >&2; exit 4' })).toEqual({
      status: 200,
      text: '{"status":"error","output":"a\\nb\\n","error":"","returncode":4}',
    })
    expect(await json('/run_python', { code: `${prefix}print(6 * 7)` })).toMatchObject({
      status: 200,
      text: expect.stringContaining('"output":"42\\n"'),
    })
    const hostile = `${prefix}import os; os.system('touch /tmp/owned'); pyautogui.click(1, 1)`
    expect(await json('/execute', { command: ['python', '-c', hostile] })).toMatchObject({
      text: expect.stringContaining('"returncode":1'),
    })
    expect(await machine.file('/tmp/owned')).toBeNull()
    expect(await json('/start_recording', {})).toMatchObject({ status: 500, text: expect.stringMatching(/ffmpeg/) })
    expect(await json('/execute', { command: 3 })).toMatchObject({ status: 400 })
    expect(await raw('/execute', { method: 'POST', body: '{' })).toMatchObject({ status: 400 })
    expect(await raw('/none')).toMatchObject({ status: 404 })
    await expect(osworldMachine('http://127.0.0.1:1')).rejects.toThrow(/does not answer/)
  })
})
