/** The desktop tier: a real X server, window manager and browser; input by XTEST, pictures by GetImage. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { apps, appSite } from '../../src/envs/gui/apps/index.ts'
import { desktopSurface } from '../../src/envs/gui/desktop/index.ts'
import type { Surface } from '../../src/envs/gui/surface.ts'
import { attempt, gui, openTaskBox, type PlayStep, validateTasks } from '../../src/envs/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { sized } from './size.ts'

const signal = new AbortController().signal

const whole = await gui.load(join(import.meta.dirname, '../../examples/tasks/gui-desktop'))
const proven = sized(
  whole,
  whole.filter(({ name }) => name === 'files-move-by-drag-1' || name === 'ledger-refunds-of-download-1'),
)

describe('a gui task on a desktop', () => {
  let sandbox: SandboxProvider
  let directory: string

  beforeAll(async () => {
    sandbox = dockerProvider()
    directory = await mkdtemp(join(tmpdir(), 'paddock-desktop-'))
  })
  afterAll(async () => {
    await sandbox.close()
    await rm(directory, { recursive: true })
  })

  const taskOf = async (app: string, goal: string): Promise<Task> => {
    const path = join(directory, `${app}-${goal}.json`)
    const screen = { width: 1280, height: 800 }
    await writeFile(path, JSON.stringify({ app, goals: [goal], seeds: [1], tier: 'desktop', screen }))
    const [task] = await gui.load(path)
    if (task === undefined) throw new Error(path)
    return task
  }
  const rewardOf = async (task: Task, steps: readonly PlayStep[]) => {
    const play = { name: 'steps', weight: 1, play: { steps } }
    return attempt({ environment: gui, task, play, sandbox, signal })
  }

  it.each([
    ['shop', 'buy-one'],
    ['kanban', 'drag'],
    ['sheet', 'set'],
    ['settings', 'forget-device'],
    ['files', 'rename'],
  ])('is reached by clicks and keys of the X server: %s %s', async (app, goal) => {
    const task = await taskOf(app, goal)
    const { play } = await gui.plays.oracle(task)
    const verdict = await rewardOf(task, play.steps)
    expect(verdict).toMatchObject({ status: 'scored', reward: 1 })
  })

  it(`proves ${proven.length} tasks of a file manager, and of a terminal and a browser together`, async () => {
    const rows = await validateTasks({ environment: gui, tasks: proven, sandbox, signal })
    expect(rows.filter(({ status }) => status !== 'proven').map(({ task, problems }) => [task.name, problems])).toEqual(
      [],
    )
  })

  it('gives nothing to code in the address bar, and opens no developer tools', async () => {
    const task = await taskOf('shop', 'buy-one')
    const computer = (args: object): PlayStep => ({ tool: 'computer', args: { ...args } })
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
      const outcome = await tool?.run({ task, box, signal }, args)
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

  it('has no verdict where the screen has another size than the task', async () => {
    const task = await taskOf('shop', 'price')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const wrapper = '#!/bin/sh\nset -- $(echo "$@" | sed s/1280x800x24/640x480x24/)\nexec /usr/bin/Xvfb "$@"\n'
    await box.putFiles('/usr/local/bin', [{ path: 'Xvfb', data: Buffer.from(wrapper), mode: 0o755, uid: 0, gid: 0 }])
    await expect(gui.setup({ task, box, signal, emit: () => undefined })).rejects.toMatchObject({
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
    }
    await using second = await desktopSurface(box, { screen, site: appSite(app, 1) })
    await second.settle()
    expect(await second.clipboard.read()).toBe('')
    expect(await look(second)).toBe(',,Notes')
  })

  it('has no verdict when its X server dies', async () => {
    const task = await taskOf('shop', 'price')
    await using box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    const context = { task, box, signal, emit: () => undefined }
    await gui.setup(context)
    await box.exec({ command: 'pkill -9 Xvfb' })
    const [tool] = gui.tools(task)
    expect(await tool?.run({ task, box, signal }, {})).toMatchObject({ status: 'infra' })
    await expect(gui.collect(context)).rejects.toMatchObject({ code: 'BROWSER_GONE' })
  })
})

/** Red, green and blue of a pixel of a PNG as `pngOfBgrx` writes it, read by the specification and not by its code. */
function pixelOf(png: Buffer, x: number, y: number): readonly number[] {
  const width = png.readUInt32BE(16)
  const data: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  }
  // Colour type 2: red, green, blue; filter 0 of a line: the samples as they are.
  expect([png[24], png[25]]).toEqual([8, 2])
  const lines = inflateSync(Buffer.concat(data))
  const line = y * (width * 3 + 1)
  expect(lines[line]).toBe(0)
  return [...lines.subarray(line + 1 + x * 3, line + 4 + x * 3)]
}
