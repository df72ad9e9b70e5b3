/** Pages and browsers that misbehave: every end is typed, none is a reward, and nothing is left in the box. */
import { makeTask } from '../../core/index.ts'
import Docker from 'dockerode'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Box, dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { attempt } from '../attempt.ts'
import type { Environment, ToolOutcome } from '../contract.ts'
import { openTaskBox } from '../open-box.ts'
import { downloadDirectory, GuiBrowser, nothing, settle } from './browser/index.ts'
import { guiDataSchema } from './data.ts'
import { GuiSession } from './session.ts'
import { tabSurface } from './surface.ts'
import { browserTools, clipboardTool, computerTool, fileTools } from './tools/index.ts'
import { builtInGui } from '../../builtin/index.ts'

const gui = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
const screen = { width: 800, height: 600 }
const data = guiDataSchema.parse({ app: 'shop', goal: 'price', seed: 1 })
const task = makeTask({
  name: 'shop-price-1',
  environment: 'gui',
  instruction: 'Find the price.',
  split: 'train',
  data,
  source: '',
})

const pages: Readonly<Record<string, string>> = {
  '/': '<h1>Start</h1><button>Nothing</button>',
  '/ticks': `<p id=a></p><p role=timer id=t></p><script>setInterval(()=>{t.textContent=performance.now()},20)</script>`,
  '/never': '<p id=a></p><script>setInterval(()=>{a.textContent=performance.now()},20)</script>',
  '/late': `<button onclick="setTimeout(()=>{document.body.style.background='red'},location.search.slice(1))">Late</button>`,
  '/moves': `<style>button{transition:margin-left .3s}</style><button onclick="this.style.marginLeft='300px'">Move</button>`,
  '/dialogs': `<button onclick="while(true){if(confirm('Again?')===null)break}">Storm</button>`,
  '/popups': `<button onclick="for(let i=0;i<50;i++)window.open('/?'+i)">Pop</button>`,
  // A gigabyte that is 16 MB many times over, and a small one.
  '/download': `<button onclick="go(64,'huge.bin')">Download</button><button onclick="go(0,'small.txt')">Small</button><script>
const part=new Blob(Array(16).fill(new Uint8Array(1<<20)));const go=(times,name)=>{const a=document.createElement('a');
a.href=URL.createObjectURL(new Blob([...Array(times).fill(part),'tail']));a.download=name;a.click()}</script>`,
  '/copy': `<p id=a>copied</p><button onclick="getSelection().selectAllChildren(a);document.execCommand('copy')">Copy</button>`,
  '/resize': `<button onclick="resizeTo(300,200);document.documentElement.requestFullscreen?.()">Resize</button>`,
  '/upload': `<input type=file aria-label=File onchange="this.files[0].text().then(t=>a.textContent=this.files[0].name+': '+t)"><p id=a></p><input aria-label=Name>`,
  '/many': `<ul>${Array.from({ length: 95 }, (_, at) => `<li><button>Item ${at}</button>`).join('')}</ul>`,
  '/frames': `<div onclick="out.textContent='one'">Only</div><div id=both><div>Left</div><div>Right</div></div>
<div style="cursor:pointer">Hand</div><div style="width:20px;height:20px" onclick="out.textContent='square'"></div><p>Words</p><p id=out></p>
<div id=root><h2>Head</h2><p>Under</p></div><svg><text y=20>Sign</text></svg><script>both.addEventListener('click',(e)=>{out.textContent=e.target.textContent})
root.onclick=()=>{};document.querySelector('text').addEventListener('mousedown',()=>{});document.onclick=()=>{};document.body.onclick=()=>{}</script>
<div style="height:900px"></div><iframe src="/framed" title=Near></iframe><iframe src="http://other.test/framed" title=Far></iframe>`,
  '/framed': `<button onclick="parent.out.textContent='framed'">Inside</button><div onclick="1">Bare</div><iframe srcdoc="<input aria-label=Deep oninput='top.out.textContent=this.value'>"></iframe>`,
  '/odd': `<iframe role=presentation src="/framed"></iframe><object data="/framed" type="text/html"></object>
<embed src="/framed" type="text/html"><div tabindex=0 onkeydown="out.textContent=event.key">Keys</div>
<div role=presentation onclick="out.textContent='pressed'"><b>Press</b></div><p id=out></p>`,
  '/brands': `<p id=a></p><script>a.textContent=JSON.stringify(navigator.userAgentData.brands)</script>`,
  '/agent': `<p id=a></p><script>a.textContent=navigator.webdriver+' '+navigator.userAgent</script>`,
  '/huge': `<p id=a></p><script>for(let i=0;i<20000;i++)document.body.append(Object.assign(document.createElement('a'),{href:'/'+i,textContent:i}),' ')</script>`,
  '/storage': `<p id=a></p><script>a.textContent='found '+(localStorage.x??'nothing')+document.cookie;localStorage.x='left';document.cookie='left=1'</script>`,
}

describe.runIf(await requireDocker())('a gui attempt', () => {
  let sandbox: SandboxProvider
  let box: Box
  let browser: GuiBrowser | null = null

  beforeAll(async () => {
    sandbox = dockerProvider()
    box = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
  })
  afterEach(async () => {
    await browser?.[Symbol.asyncDispose]()
    browser = null
  })
  afterAll(() => sandbox.close())

  const site = (path: string) => ({
    start: `http://evil.test${path}`,
    serve: ({ url }: { readonly url: URL }) => ({
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: `<!doctype html>${pages[url.pathname] ?? '<p>none</p>'}`,
    }),
    state: () => ({}),
    forged: 0,
  })
  /** The tools of an attempt that begins at one of these pages. */
  const begin = async (path: string) => {
    browser ??= await GuiBrowser.open(box, { screen, site: site(path) })
    const open = browser
    const session = new GuiSession({
      surface: tabSurface(open, screen),
      site: site(path),
      image: { format: 'png', scale: 1 },
      maxActions: null,
    })
    await settle(() => open.page, { capMs: 500 })
    const sessionOf = async () => session
    const tools = [
      ...browserTools(sessionOf),
      ...fileTools(sessionOf),
      clipboardTool(sessionOf),
      computerTool(screen, sessionOf),
    ]
    const use = (name: string, args: unknown): Promise<ToolOutcome> => {
      const tool = tools.find((one) => one.name === name)
      if (tool === undefined) throw new Error(name)
      return tool.run({ task, attempt: { id: 'attempt' }, box, signal }, args)
    }
    return { session, use, browser: open }
  }

  it('says infra when the browser is killed, and has no record', async () => {
    const { session, use } = await begin('/')
    expect(await use('browser_snapshot', {})).toMatchObject({ status: 'ok' })
    await box.exec({ command: 'pkill -9 -u browser' })
    expect(await use('browser_click', { target: 'button "Nothing"' })).toMatchObject({ status: 'infra' })
    expect(() => session.record()).toThrow(/browser/i)
  })

  it('says infra when the renderer crashes, and has no record', async () => {
    const { session, use, browser: open } = await begin('/')
    open.page.send('Page.crash', {}, nothing).catch(() => undefined)
    await open.page.when(() => open.page.fault !== null)
    expect(await use('browser_snapshot', {})).toMatchObject({ status: 'infra', text: /renderer/ })
    expect(() => session.record()).toThrow(/renderer/)
  })

  it('rests beside a ticking clock, and goes on at the cap where a page never rests', async () => {
    const ticking = await begin('/ticks')
    expect(await ticking.use('computer', { action: 'move', x: 5, y: 5 })).toMatchObject({
      status: 'ok',
      facts: { settledBy: 'quiet' },
    })
    await ticking.use('browser_navigate', { url: 'http://evil.test/never' })
    const outcome = await ticking.use('computer', { action: 'move', x: 5, y: 6 })
    expect(outcome).toMatchObject({ status: 'ok', facts: { settledBy: 'cap' }, text: /still changing/ })
  })

  it.each(['/late?30', '/late?48', '/late?52', '/late?56', '/moves'])(
    'shows of %s what it has come to, not what it was on the way',
    async (path) => {
      const { use } = await begin(path)
      const before = await use('computer', { action: 'screenshot' })
      const clicked = await use('computer', { action: 'click', x: 20, y: 18 })
      const after = await use('computer', { action: 'screenshot' })
      const bytes = ({ pictures: [picture] = [] }: ToolOutcome) => Buffer.from(picture?.data ?? [])
      expect(bytes(clicked).equals(bytes(after))).toBe(true)
      expect(bytes(clicked).equals(bytes(before))).toBe(false)
    },
  )

  it('answers dialogs one by one, however many a page opens, and takes no input meanwhile', async () => {
    const { use } = await begin('/dialogs')
    expect(await use('browser_click', { target: 'button "Storm"' })).toMatchObject({
      text: /dialog is open \(confirm\)/,
    })
    for (const accept of [true, false, true]) {
      expect(await use('browser_dialog', { accept })).toMatchObject({ status: 'ok', text: /dialog is open/ })
    }
    expect(await use('computer', { action: 'click', x: 10, y: 10 })).toMatchObject({ status: 'error', text: /dialog/ })
  })

  it('keeps at most a dozen tabs', async () => {
    const { use, browser: open } = await begin('/popups')
    await use('browser_click', { target: 'button "Pop"' })
    expect(open.tabs.length).toBeGreaterThan(1)
    expect(open.tabs.length).toBeLessThanOrEqual(12)
    expect(await use('browser_tabs', { action: 'select', index: 0 })).toMatchObject({ status: 'ok' })
    expect(await use('browser_snapshot', {})).toMatchObject({ text: /button "Pop"/ })
  })

  it('cancels a download of a gigabyte, and keeps nothing of it', async () => {
    const { use, browser: open } = await begin('/download')
    await use('browser_click', { target: 'button "Download"' })
    await open.page.when(() => open.downloads[0] !== undefined && open.downloads[0].state !== 'running')
    expect(open.downloads).toMatchObject([{ name: 'huge.bin', state: 'canceled' }])
    expect(await use('browser_save_download', { name: 'huge.bin' })).toMatchObject({
      status: 'error',
      text: /canceled/,
    })
    const listed = { command: ['ls', '-A', downloadDirectory], user: 'root' } as const
    await expect.poll(() => box.exec(listed)).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.alloc(0) })
  })

  it('brings a download to the workspace, and a file of it to a page; no other file', async () => {
    const { use, browser: open } = await begin('/download')
    await use('browser_click', { target: 'button "Small"' })
    await open.page.when(() => open.downloads[0]?.state === 'completed')
    expect(await use('browser_save_download', { name: 'small.txt' })).toMatchObject({ text: /4 bytes/ })
    await use('browser_navigate', { url: 'http://evil.test/upload' })
    expect(await use('browser_upload', { target: '"File"', files: ['small.txt'] })).toMatchObject({
      text: /small.txt: tail/,
    })
    // The agent's user may not read it, so neither does the tool.
    const secret = `${downloadDirectory}/${open.downloads[0]?.guid}`
    for (const files of [[secret], ['/etc/shadow'], ['gone.txt'], ['/proc/1/environ']]) {
      expect(await use('browser_upload', { target: '"File"', files })).toMatchObject({ status: 'error', text: /read/ })
    }
    expect(await use('browser_upload', { target: 'textbox "Name"', files: ['small.txt'] })).toMatchObject({
      status: 'error',
      text: /no file field/,
    })
  })

  it('shows what is found in pages', async () => {
    const { use } = await begin('/many')
    const first = await use('browser_find', { text: 'button "Item' })
    expect(first.text).toMatch(/Item 39"[\s\S]*page 1 of 3; 95 elements/)
    expect(await use('browser_find', { text: 'button "Item', page: 3 })).toMatchObject({ text: /Item 94"/ })
    expect(await use('browser_find', { text: 'button "Item', page: 4 })).toMatchObject({ status: 'error' })
  })

  it('names what answers to clicks without a role, and what is in frames, and reaches both', async () => {
    const { use } = await begin('/frames')
    const { text } = await use('browser_snapshot', {})
    const lines = text.replaceAll(/ \[ref=e\d+\]/g, '').split('\n')
    const framed = (title: string) => [
      `- Iframe "${title}"`,
      '  - button "Inside"',
      '  - clickable "Bare"',
      '  - Iframe',
      '    - textbox "Deep"',
    ]
    expect(lines.slice(0, 20)).toEqual([
      '- clickable "Only"',
      '- clickable "Left Right"',
      '  - clickable "Left"',
      '  - clickable "Right"',
      '- clickable "Hand"',
      '- clickable',
      '- text: Words',
      // Whoever clicks on the heading has clicked on what is around it.
      '- heading "Head" [level=2]',
      '- text: Under',
      '- SvgRoot',
      '  - clickable "Sign"',
      ...framed('Near'),
      ...framed('Far').slice(0, 4),
    ])
    for (const [target, says] of [
      ['clickable "Only"', 'one'],
      ['clickable "Right"', 'Right'],
      ['Iframe "Near" > button "Inside"', 'framed'],
    ] as const) {
      expect((await use('browser_click', { target })).text).toContain(`- text: ${says}`)
    }
    const typed = await use('browser_type', { target: 'Iframe "Near" > textbox "Deep"', text: 'below' })
    expect(typed.text).toContain('- text: below')
    await use('browser_navigate', { url: 'http://evil.test/agent' })
    expect((await use('browser_text', {})).text).toMatch(/^false .* Chrome\/\d/)
    await use('browser_navigate', { url: 'https://evil.test/brands' })
    expect((await use('browser_text', {})).text).toMatch(/^\[\{"brand":"Chromium","version":"\d+"\}\]/)
  })

  it('names what has the role of nothing, what listens to keys, and what is in frames of any kind', async () => {
    const { use } = await begin('/odd')
    const { text } = await use('browser_snapshot', {})
    const framed = ['- Iframe', '  - button "Inside"', '  - clickable "Bare"', '  - Iframe', '    - textbox "Deep"']
    expect(
      text
        .replaceAll(/ \[ref=e\d+\]/g, '')
        .split('\n')
        .slice(0, 17),
    ).toEqual([...framed, ...framed, ...framed, '- clickable "Keys"', '- clickable "Press"'])
    expect((await use('browser_click', { target: 'clickable "Press"' })).text).toContain('- text: pressed')
    expect((await use('browser_click', { target: 'button "Inside" #1' })).text).toContain('- text: framed')
  })

  it('says of a page with more than its tree can hold that it has too much, and goes on', async () => {
    const { use } = await begin('/')
    expect(await use('browser_navigate', { url: 'http://evil.test/huge' })).toMatchObject({
      status: 'ok',
      text: /\d+ elements, too many.*browser_text/,
    })
    expect(await use('browser_click', { target: 'link "7"' })).toMatchObject({ status: 'error', text: /too many/ })
    expect(await use('browser_text', {})).toMatchObject({ text: /characters in all/ })
    expect(await use('browser_navigate', { url: 'http://evil.test/' })).toMatchObject({ text: /button "Nothing"/ })
  })

  it('keeps the size of its screen, whatever a page asks for', async () => {
    const { use } = await begin('/resize')
    const shown = await use('browser_click', { target: 'button "Resize"' })
    expect(shown).toMatchObject({ status: 'ok' })
    const { pictures: [picture] = [] } = await use('computer', { action: 'screenshot' })
    const png = Buffer.from(picture?.data ?? [])
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([screen.width, screen.height])
  })

  it('has a clipboard that its tools read and write', async () => {
    const { use } = await begin('/copy')
    await use('browser_click', { target: 'button "Copy"' })
    expect(await use('browser_clipboard', {})).toMatchObject({ text: /holds:\ncopied/ })
    expect(await use('browser_clipboard', { text: 'önce\nsonra' })).toMatchObject({ status: 'ok' })
    expect(await use('browser_clipboard', {})).toMatchObject({ text: /holds:\nönce\nsonra/ })
    expect(await use('browser_snapshot', {})).toMatchObject({ text: /button "Copy"/ })
  })

  it('leaves nothing to the next: no storage, no cookie, no download, nothing on the clipboard', async () => {
    const { use, browser: open } = await begin('/storage')
    expect(await use('browser_text', {})).toMatchObject({ text: /found nothing/ })
    await use('browser_navigate', { url: 'http://evil.test/storage?again' })
    expect(await use('browser_text', {})).toMatchObject({ text: /found left.*left=1/ })
    await use('browser_clipboard', { text: 'left' })
    await use('browser_navigate', { url: 'http://evil.test/download' })
    await use('browser_click', { target: 'button "Small"' })
    await open.page.when(() => open.downloads[0]?.state === 'completed')
    await open.reset(site('/storage'))
    await settle(() => open.page)
    expect(await use('browser_text', {})).toMatchObject({ text: /found nothing\n/ })
    expect(await use('browser_clipboard', {})).toMatchObject({ text: /is empty/ })
    expect(open.downloads).toEqual([])
    expect(await box.exec({ command: `ls ${downloadDirectory}/*`, user: 'root' })).not.toMatchObject({ code: 0 })
  })

  it.each([
    ['its browser is killed', 'pkill -9 -u browser'],
    ['its renderer is killed', 'pkill -9 -u browser -f type=renderer'],
  ])('has no verdict, and no box any more, when %s', async (_what, command) => {
    let id = ''
    const broken: Environment = {
      ...gui,
      collect: async (context) => {
        id = context.box.id
        await context.box.exec({ command, user: 'root', cwd: '/' })
        // The browser says so in its own time.
        const [snapshot] = gui.tools(task)
        await snapshot?.run({ task, attempt: context.attempt, box: context.box, signal }, {})
        return gui.collect(context)
      },
    }
    const script = { name: 'idle', weight: 1, script: { steps: [] } }
    const verdict = await attempt({ environment: broken, task, script, sandbox, signal })
    expect(verdict).toMatchObject({ status: 'infra_error', reward: null, reason: /BROWSER_GONE/ })
    await expect(new Docker().getContainer(id).inspect()).rejects.toMatchObject({ statusCode: 404 })
  })
})
