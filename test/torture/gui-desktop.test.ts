/** The desktop tier: a real X server, window manager and browser; input by XTEST, pictures from the server's memory. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { desktopSurface } from '../../src/envs/gui/desktop/index.ts'
import type { Surface } from '../../src/envs/gui/surface.ts'
import { attempt, openTaskBox, type ScriptStep, validateTasks } from '../../src/envs/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { readPng } from '../properties/read-png.ts'
import { sized } from './size.ts'
import { appSite } from '../../src/envs/gui/application/index.ts'
import { appsByName } from '../../src/envs/gui/plugins.ts'
import { builtInGui, guiApps } from '../../src/builtin/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const apps = appsByName(guiApps)
const gui = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
/** For what a busy machine paints late; what is never painted ends the test with what was there. */
const patience = { timeout: 60_000, interval: 1 }

const whole = await gui.load(join(import.meta.dirname, '../../examples/tasks/gui-desktop'))
const proven = sized(
  whole,
  whole.filter(({ name }) =>
    ['files-move-by-drag-1', 'ledger-refunds-of-download-1', 'register-move-1', 'pumps-limit-1'].includes(name),
  ),
)

describe('a gui task on a desktop', () => {
  let sandbox: SandboxProvider
  let directory: string

  beforeAll(async () => {
    sandbox = dockerProvider()
    directory = tempDir()
  })
  afterAll(async () => {
    await sandbox.close()
  })

  const taskOf = async (app: string, goal: string): Promise<Task> => {
    const path = join(directory, `${app}-${goal}.json`)
    const screen = { width: 1280, height: 800 }
    await writeFile(path, JSON.stringify({ app, goals: [goal], seeds: [1], tier: 'desktop', screen }))
    const [task] = await gui.load(path)
    if (task === undefined) throw new Error(path)
    return task
  }
  const rewardOf = async (task: Task, steps: readonly ScriptStep[]) => {
    const script = { name: 'steps', weight: 1, script: { steps } }
    return attempt({ environment: gui, task, script, sandbox, signal })
  }

  it.each([
    ['shop', 'buy-one'],
    ['kanban', 'drag'],
    ['sheet', 'set'],
    ['settings', 'forget-device'],
    ['files', 'rename'],
    ['files', 'trash'],
  ])('is reached by clicks and keys of the X server: %s %s', async (app, goal) => {
    const task = await taskOf(app, goal)
    const { script } = await gui.scripts.oracle(task)
    const verdict = await rewardOf(task, script.steps)
    expect(verdict).toMatchObject({ status: 'scored', reward: 1 })
  })

  it(`proves ${proven.length} tasks: in the browser, beside a file manager, beside a terminal`, async () => {
    const rows = await validateTasks({ environment: gui, tasks: proven, sandbox, signal })
    expect(rows.filter(({ status }) => status !== 'proven').map(({ name, problems }) => [name, problems])).toEqual([])
  })

  it('scores the files of the box: a copy, a link and a file too many are not what was asked for', async () => {
    const task = await taskOf('register', 'rename')
    const { files } = apps.get('register')?.plan('rename', 1) ?? {}
    const from = /scan-\d+\.txt/.exec(task.instruction)?.[0] ?? ''
    const to = Object.keys(files ?? {}).find((path) => /^(?!scan-).*\.txt$/.test(path)) ?? ''
    const rename = `mv ${from} ${to}`
    const context = { task, attempt: { id: 'attempt' }, signal, emit: () => undefined }
    const rewardAfter = async (command: string) => {
      await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
      await gui.setup({ ...context, box })
      expect(await box.exec({ command, user: 'agent', cwd: '/workspace' })).toMatchObject({ code: 0 })
      const artifacts = await gui.collect({ ...context, box })
      const openBox = () => Promise.reject(new Error('no box is needed'))
      const { reward, evidence } = await gui.verify({ ...context, artifacts, openBox })
      return { reward, evidence }
    }
    expect(await rewardAfter(rename)).toMatchObject({ reward: 1 })
    expect(await rewardAfter(`${rename}; cp ${to} copy.txt`)).toMatchObject({ reward: 0, evidence: /files 0/ })
    expect(await rewardAfter(`${rename}; mv ${to} /tmp/x; ln -s /tmp/x ${to}`)).toMatchObject({ reward: 0 })
    expect(await rewardAfter(`${rename}; echo more >> ${to}`)).toMatchObject({ reward: 0 })
  })

  it('knows its windows beside another server that counts its atoms otherwise', async () => {
    const task = await taskOf('notes', 'rewrite')
    const app = apps.get('notes')
    if (app === undefined) throw new Error('notes')
    const screen = { width: 1280, height: 800 }
    const open = async (box: Box) => {
      await using surface = await desktopSurface(box, { screen, site: appSite(app, 1), beside: 'terminal' })
      await surface.settle()
    }
    await using plain = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    await open(plain)
    await using other = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const atoms = 'for i in 1 2 3 4 5 6 7 8 9; do xprop -root -f OTHER_$i 8s -set OTHER_$i x; done'
    const openbox = `#!/bin/sh\n${atoms}\nexec /usr/bin/openbox "$@"\n`
    await other.putFiles('/usr/local/bin', [{ path: 'openbox', data: openbox, mode: 0o755, uid: 0, gid: 0 }])
    await open(other)
  })

  it('is at rest when the programs are: a command of the terminal has run before the attempt ends', async () => {
    const task = whole.find(({ name }) => name === 'pumps-limit-1')
    if (task === undefined) throw new Error('pumps-limit-1')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
    await gui.setup(context)
    const computer = gui.tools(task).find(({ name }) => name === 'computer')
    const work = `i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo $i > count.txt\n`
    await computer?.run({ task, attempt: { id: 'attempt' }, box, signal }, { action: 'click', x: 1000, y: 600 })
    const typed = await computer?.run({ task, attempt: { id: 'attempt' }, box, signal }, { action: 'type', text: work })
    expect(typed).toMatchObject({ status: 'ok' })
    const found = await box.exec({ command: 'cat count.txt', user: 'agent', cwd: '/workspace' })
    expect(Buffer.from(found.stdout).toString('utf8')).toBe('60000\n')
  })

  it('gives nothing to code in the address bar, and opens no developer tools', async () => {
    const task = await taskOf('shop', 'buy-one')
    const computer = (args: object): ScriptStep => ({ tool: 'computer', args: { ...args } })
    const enter = (text: string) => [
      computer({ action: 'key', keys: 'ctrl+l' }),
      computer({ action: 'type', text }),
      computer({ action: 'key', keys: 'Enter' }),
    ]
    const order = `fetch('/do/order',{method:'POST',body:new URLSearchParams({_page:document.body.dataset.page,address:'1',shipping:'Standard'})})`
    const add = `fetch('/do/wish',{method:'POST',body:new URLSearchParams({_page:document.body.dataset.page,id:'p1'})})`
    const verdict = await rewardOf(task, [
      ...enter(`javascript:${add}`),
      ...enter(`javascript:${order}`),
      ...enter('view-source:http://shop.test/'),
      ...enter('chrome://inspect'),
      ...['F12', 'ctrl+shift+i', 'ctrl+shift+j'].map((keys) => computer({ action: 'key', keys })),
      computer({ action: 'type', text: `${add}\n` }),
      computer({ action: 'done' }),
    ])
    // Nothing of it has changed the state at all: the code did not run.
    expect(verdict).toMatchObject({ status: 'scored', reward: 0, evidence: /nothing was changed/ })
  })

  it('types what no key of its keyboard has, and shows all of its screen as PNG', async () => {
    const task = await taskOf('notes', 'rewrite')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const use = async (name: string, args: object) => {
      const tool = gui.tools(task).find((one) => one.name === name)
      const outcome = await tool?.run({ task, attempt: { id: 'attempt' }, box, signal }, args)
      expect(outcome).toMatchObject({ status: 'ok' })
      return outcome
    }
    await use('browser_click', { target: 'link "Ideas"' })
    const typed = await use('browser_type', { target: 'textbox "Title"', text: 'Çağrı 東京 ñ' })
    expect(typed?.text).toContain('Çağrı 東京 ñ')
    const shown = await use('computer', { action: 'screenshot' })
    const [picture] = shown?.pictures ?? []
    expect(picture).toMatchObject({ mediaType: 'image/png', width: 1280, height: 800 })
    // The bar of the app is #24406b; it is at this line below what the window shows.
    expect(pixelOf(Buffer.from(picture?.data ?? []), 1000, 110)).toEqual([0x24, 0x40, 0x6b])
    const near = await use('computer', { action: 'zoom', x: 990, y: 100, width: 20, height: 20 })
    expect(pixelOf(Buffer.from(near?.pictures?.[0]?.data ?? []), 5, 5)).toEqual([0x24, 0x40, 0x6b])
  })

  it('gives what was painted last, where a picture was taken ahead of it', async () => {
    const task = await taskOf('notes', 'rewrite')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const app = apps.get('notes')
    if (app === undefined) throw new Error('notes')
    const screen = { width: 1280, height: 800 }
    await using surface = await desktopSurface(box, { screen, site: appSite(app, 1) })
    const image = { format: 'png', scale: 1 } as const
    const shade = async (colour: string) => {
      // Resolves when the page has been painted with it; that the screen has been, the next rest tells.
      const paint = `(colour) => {
        const over = document.querySelector('#over') ?? document.body.appendChild(document.createElement('div'))
        over.id = 'over'
        over.style = 'position: fixed; inset: 0; background: ' + colour
        return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(colour))))
      }`
      await surface.browser.page.look(paint, colour, true)
    }
    const seen = async () => pixelOf(Buffer.from((await surface.picture(image)).data), 640, 600)
    await surface.settle()
    await shade('#ff0000')
    await surface.settle({ see: image })
    expect(await seen()).toEqual([0xff, 0, 0])
    await shade('#0000ff')
    // None is taken ahead of this rest: the one that is kept is older than the repaint.
    await surface.settle()
    expect(await seen()).toEqual([0, 0, 0xff])
    await shade('#00ff00')
    await surface.settle({ see: image })
    expect(await seen()).toEqual([0, 0xff, 0])
  })

  it('shows what is on the screen when it is asked for, as a plain reading of all of it does', async () => {
    const task = await taskOf('notes', 'rewrite')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const app = apps.get('notes')
    if (app === undefined) throw new Error('notes')
    const screen = { width: 1280, height: 800 }
    await using surface = await desktopSurface(box, { screen, site: appSite(app, 1) })
    await surface.settle()
    // The file that the X server keeps its screen in, all of it: blue, green, red and nothing for a pixel, at its end.
    const plain = async () => {
      const file = '/var/lib/browser/screen/Xvfb_screen0'
      const { stdout } = await box.exec({ command: ['cat', file], user: 'root', cwd: '/', maxOutputBytes: 8 << 20 })
      const pixels = stdout.subarray(-screen.width * screen.height * 4)
      const all = new Uint32Array(Uint8Array.from(pixels).buffer)
      return { all, at: (x: number, y: number) => (all[y * screen.width + x] ?? 0) & 0xff_ffff }
    }
    // A first patch, over all of the page, shows where the page begins.
    await surface.browser.page.look(addPatch, { left: 0, top: 0, ...screen, colour: 0xfe_00_fd })
    // At rest, for a page that is half painted begins elsewhere.
    await surface.settle()
    const first = (await plain()).all.findIndex((colour) => (colour & 0xff_ffff) === 0xfe_00_fd)
    expect(first).toBeGreaterThan(0)
    const page = { x: first % screen.width, y: Math.floor(first / screen.width) }
    const cornersOf = ({ left, top, width, height }: Patch): readonly (readonly [number, number])[] =>
      [0, width - 1].flatMap((x) => [0, height - 1].map((y) => [page.x + left + x, page.y + top + y] as const))
    for (const [at, patch] of patches.entries()) {
      // Neither a pointer that moves nor a picture that is taken ahead makes a later one older than it is.
      await surface.input({ action: 'move', x: page.x + 60 + at * 20, y: page.y + 60 + at * 10 })
      if (at % 2 === 1) await surface.settle({ see: { format: 'png', scale: 1 } })
      await surface.browser.page.look(addPatch, patch)
      const corners = cornersOf(patch)
      await vi.waitFor(async () => {
        const on = await plain()
        expect(corners.map(([x, y]) => on.at(x, y))).toEqual(corners.map(() => patch.colour))
      }, patience)
      const { samples } = readPng(Buffer.from((await surface.picture({ format: 'png', scale: 1 })).data))
      const wanted = await plain()
      const shown = patches.slice(0, at + 1).flatMap(cornersOf)
      expect(shown.map(([x, y]) => samples.readUIntBE((y * screen.width + x) * 3, 3))).toEqual(
        shown.map(([x, y]) => wanted.at(x, y)),
      )
    }
  })

  it('has no verdict where the screen has another size than the task', async () => {
    const task = await taskOf('shop', 'price')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const wrapper = '#!/bin/sh\nset -- $(echo "$@" | sed s/1280x800x24/640x480x24/)\nexec /usr/bin/Xvfb "$@"\n'
    await box.putFiles('/usr/local/bin', [{ path: 'Xvfb', data: Buffer.from(wrapper), mode: 0o755, uid: 0, gid: 0 }])
    await expect(
      gui.setup({ task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }),
    ).rejects.toMatchObject({
      code: 'BROWSER_GONE',
      message: expect.stringContaining('640x480 in place of 1280x800'),
    })
  })

  it('starts beside the locks of a server that runs no more, and anew in the same box with nothing of before', async () => {
    const task = await taskOf('notes', 'rewrite')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    await box.exec({ command: 'mkdir -p /tmp/.X11-unix; echo "       999" > /tmp/.X1-lock; touch /tmp/.X11-unix/X1' })
    const app = apps.get('notes')
    if (app === undefined) throw new Error('notes')
    const screen = { width: 1280, height: 800 }
    const look = (surface: Surface) =>
      surface.browser.page.look('() => [localStorage.x, document.cookie, document.title].join()', null)
    {
      await using first = await desktopSurface(box, { screen, site: appSite(app, 1) })
      await first.settle()
      await first.clipboard.write('left')
      expect(await first.clipboard.read()).toBe('left')
      await first.browser.page.look("() => { localStorage.x = 'left'; document.cookie = 'left=1; max-age=9999' }", null)
      expect(await look(first)).toBe('left,left=1,Notes')
      // A window of another program, a download, a file at home, and a second window of the browser.
      await box.exec({
        command: inDesktop('xterm -e sleep 999 >/dev/null 2>&1 &'),
        user: 'browser',
        background: 'keep',
      })
      await box.exec({
        command: leftFiles.map((path) => `mkdir -p $(dirname ${path}) && touch ${path}`).join('; '),
        user: 'browser',
      })
      await first.browser.page.look("() => { open(location.href, '', 'popup') }", null, false, true)
      await first.settle()
      expect(await first.clipboard.read()).toBe('left')
      expect(first.browser.tabs).toHaveLength(2)
    }
    await using second = await desktopSurface(box, { screen, site: appSite(app, 1) })
    await second.settle()
    expect(await second.clipboard.read()).toBe('')
    expect(await look(second)).toBe(',,Notes')
    expect(second.browser.tabs).toHaveLength(1)
    expect(second.browser.downloads).toEqual([])
    const listed = await box.exec({ command: `ls ${leftFiles.join(' ')}; pgrep -x xterm`, user: 'root' })
    expect(Buffer.from(listed.stdout).toString('utf8')).toBe('')
    const windows = await box.exec({ command: inDesktop('xwininfo -root -tree'), user: 'browser' })
    expect(Buffer.from(windows.stdout).toString('utf8')).toContain('Notes')
    expect(Buffer.from(windows.stdout).toString('utf8')).not.toMatch(/xterm/i)
  })

  it('has no verdict when its X server dies', async () => {
    const task = await taskOf('shop', 'price')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
    await gui.setup(context)
    await box.exec({ command: 'pkill -9 Xvfb' })
    const [tool] = gui.tools(task)
    expect(await tool?.run({ task, attempt: { id: 'attempt' }, box, signal }, {})).toMatchObject({ status: 'infra' })
    await expect(gui.collect(context)).rejects.toMatchObject({ code: 'BROWSER_GONE' })
  })
})

const leftFiles = ['/home/browser/left', '/var/lib/browser/downloads/left', '/var/lib/browser/uploads/left']

/** A line for the shell of the desktop's user, who may use the screen. */
function inDesktop(line: string): string {
  return `export HOME=/home/browser DISPLAY=:1 XAUTHORITY=/var/lib/browser/xauth; ${line}`
}

/** Red, green and blue of a pixel of a PNG. */
function pixelOf(png: Buffer, x: number, y: number): readonly number[] {
  const { width, samples } = readPng(png)
  return [...samples.subarray((y * width + x) * 3, (y * width + x) * 3 + 3)]
}

interface Patch {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  readonly colour: number
}

/** Adds a patch to the page, over all that is there; at this place of the page, in pixels. */
const addPatch = `({ left, top, width, height, colour }) => {
  const patch = document.body.appendChild(document.createElement('div'))
  patch.style = 'position: fixed; left: ' + left + 'px; top: ' + top + 'px; width: ' + width + 'px; height: ' + height
    + 'px; background: #' + colour.toString(16).padStart(6, '0')
}`

/** Patches of every size, some over others, each in a colour of its own. */
const patches: readonly Patch[] = Array.from({ length: 24 }, (_, at) => ({
  left: 40 + ((at * 97) % 500),
  top: 40 + ((at * 61) % 300),
  width: [6, 600, 1][at % 3] ?? 1,
  height: [6, 1, 300, 40][at % 4] ?? 1,
  colour: 0x20_30_40 + at * 0x07_05_03,
}))
