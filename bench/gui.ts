/**
 * Browser and desktop tier of the gui environment, beside floors of the same run: what the browser needs for the bare
 * request, and what a command per action would cost.
 *
 *   node bench/gui.ts [--rounds 30] [--starts 5] [--sessions 12] [--json]
 */
import { readFlags } from './flags.ts'
import { GuiBrowser, type InputAction, nothing } from '../src/envs/gui/browser/index.ts'
import { desktopSurface } from '../src/envs/gui/desktop/index.ts'
import { guiDataSchema } from '../src/envs/gui/data.ts'
import { planOf } from '../src/envs/gui/load.ts'
import { GuiSession } from '../src/envs/gui/session.ts'
import { type Surface, tabSurface } from '../src/envs/gui/surface.ts'
import { computerTool } from '../src/envs/gui/tools/index.ts'
import { attempt, openTaskBox } from '../src/envs/index.ts'
import { makeTask } from '../src/core/index.ts'
import { type Box, dockerProvider } from '../src/sandbox/index.ts'
import { appSite } from '../src/envs/gui/application/index.ts'
import { appsByName } from '../src/envs/gui/plugins.ts'
import { builtInGui, guiApps } from '../src/builtin/index.ts'

const apps = appsByName(guiApps)
const gui = builtInGui({ trustTasks: false })

type Tier = 'browser' | 'desktop'

/** What something takes, and what the bare request for it takes, in milliseconds, p50 of the same run. */
export interface Beside {
  readonly ms: number
  readonly floorMs: number
}

export interface TierBench {
  readonly bootMs: number
  /** Browser: a fresh context. Desktop: all of its programs anew, in the same box. */
  readonly resetMs: number
  /** Asked for by itself; of a desktop, after all of its screen was repainted. Floor: the bare request for the pixels. */
  readonly picture: Beside
  /** What a step waits for its picture once all is at rest. */
  readonly pictureOfStepMs: number
  /** Floor: a round trip to browser or X server. */
  readonly move: Beside
  readonly click: Beside
  readonly key: Beside
  /** A whole step with a picture, less the time in which the page came to rest. */
  readonly stepOverheadMs: number
  /** Memory of all processes in the box, in MB, without files that the kernel caches. */
  readonly memoryMb: number
  /** The same box asked to run `true`: what a command per action costs at least. */
  readonly execMs: number
}

const signal = new AbortController().signal
const screen = { width: 1280, height: 800 }
const bareShot = { format: 'png', optimizeForSpeed: true }

function taskOf(tier: Tier, goal: string, seed: number) {
  const data = guiDataSchema.parse({ app: 'shop', goal, seed, tier, screen })
  const { instruction } = planOf(apps, data)
  return makeTask({ name: `shop-${goal}-${seed}`, environment: 'gui', instruction, split: 'train', data, source: '' })
}

/** Measures one tier in one box; starts it and sets it back so many times. */
export async function benchTier(tier: Tier, rounds: number, starts: number): Promise<TierBench> {
  const app = apps.get('shop')
  if (app === undefined) throw new Error('shop')
  const task = taskOf(tier, 'price', 1)
  await using sandbox = dockerProvider()
  await sandbox.ensureImage(gui.box(task).image)
  const boots: number[] = []
  let box: Box | undefined
  let surface: Surface | undefined
  for (let round = 0; round < starts; round += 1) {
    await surface?.[Symbol.asyncDispose]()
    await box?.destroy()
    const made = await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })
    box = made
    const site = appSite(app, 1)
    boots.push(
      await timed(async () => {
        surface =
          tier === 'desktop'
            ? await desktopSurface(made, { screen, site })
            : tabSurface(await GuiBrowser.open(made, { screen, site }), screen)
      }),
    )
  }
  if (box === undefined || surface === undefined) throw new Error('no round')
  let opened = surface
  const inBox = box
  await opened.settle()
  const image = { format: 'png', scale: 1 } as const
  const repaint = async (round: number) => {
    await opened.browser.page.look(`() => { document.documentElement.style.filter = 'invert(${round % 2})' }`, null)
    await opened.settle()
  }
  const pictures: number[] = []
  const barePictures: number[] = []
  const ofSteps: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    await repaint(round)
    pictures.push(await timed(() => opened.picture(image)))
    barePictures.push(await timed(() => opened.browser.page.send('Page.captureScreenshot', bareShot, nothing)))
    await opened.input({ action: 'click', x: 600, y: 700 - (round % 20) })
    const from = performance.now()
    const { ms, seen } = await opened.settle({ see: image })
    if (seen === null) await opened.picture(image)
    ofSteps.push(performance.now() - from - ms)
  }
  const bare = middle(await repeated(rounds, () => opened.browser.page.send('Page.getLayoutMetrics', {}, nothing)))
  const beside = async (act: (round: number) => InputAction): Promise<Beside> => {
    const times: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      times.push(await timed(() => opened.input(act(round))))
      await opened.settle({ quietMs: 20 })
    }
    return { ms: middle(times), floorMs: bare }
  }
  const move = await beside((round) => ({ action: 'move', x: 300 + (round % 50), y: 300 }))
  const click = await beside((round) => ({ action: 'click', x: 600, y: 700 - (round % 20) }))
  const key = await beside(() => ({ action: 'key', keys: 'Shift', repeat: 1 }))
  const session = new GuiSession({ surface: opened, site: appSite(app, 1), image, maxActions: null })
  const tool = computerTool(screen, async () => session)
  const steps: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const from = performance.now()
    const outcome = await tool.run(
      { task, attempt: { id: 'attempt' }, box: inBox, signal },
      { action: 'click', x: 600, y: 700 - (round % 20) },
    )
    steps.push(performance.now() - from - Number(outcome.facts?.['settleMs'] ?? 0))
  }
  const memoryMb = await memoryOf(inBox)
  const resets = await repeated(tier === 'desktop' ? Math.min(3, starts) : starts * 2, async () => {
    if (tier === 'browser') return opened.browser.reset(appSite(app, 2))
    await opened[Symbol.asyncDispose]()
    opened = await desktopSurface(inBox, { screen, site: appSite(app, 2) })
  })
  return {
    bootMs: middle(boots),
    resetMs: middle(resets),
    picture: { ms: middle(pictures), floorMs: middle(barePictures) },
    pictureOfStepMs: middle(ofSteps),
    move,
    click,
    key,
    stepOverheadMs: middle(steps),
    memoryMb,
    execMs: middle(await repeated(rounds, () => inBox.exec({ command: ['true'] }))),
  }
}

/** Runs the oracle in so many boxes at once; gives how many did not score 1, and how long all of it took. */
export async function benchTogether(sessions: number): Promise<{ readonly faults: number; readonly seconds: number }> {
  await using sandbox = dockerProvider()
  let faults = 0
  const ms = await timed(() =>
    Promise.all(
      Array.from({ length: sessions }, async (_, at) => {
        const task = taskOf('browser', 'buy-one', at + 1)
        const script = await gui.scripts.oracle(task)
        const verdict = await attempt({ environment: gui, task, script, sandbox, signal })
        if (verdict.reward !== 1) faults += 1
      }),
    ),
  )
  return { faults, seconds: ms / 1000 }
}

async function memoryOf(box: Box): Promise<number> {
  // Cgroup v1 and v2 name it differently (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst).
  const command =
    'awk \'$1=="rss"||$1=="anon"{print $2}\' /sys/fs/cgroup/memory/memory.stat /sys/fs/cgroup/memory.stat 2>/dev/null'
  const { stdout } = await box.exec({ command })
  return Number(Buffer.from(stdout).toString('utf8').split('\n')[0]) / 2 ** 20
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

async function repeated(rounds: number, work: (round: number) => Promise<unknown>): Promise<number[]> {
  const out: number[] = []
  for (let round = 0; round < rounds; round += 1) out.push(await timed(() => work(round)))
  return out
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

if (import.meta.main) {
  const { rounds, starts, sessions, json } = readFlags(
    { rounds: 30, starts: 5, sessions: 12, json: false },
    { rounds: 1, starts: 1, sessions: 1 },
  )
  const browser = await benchTier('browser', rounds, starts)
  const desktop = await benchTier('desktop', rounds, starts)
  const together = await benchTogether(sessions)
  if (json) console.log(JSON.stringify({ browser, desktop, together }, null, 2))
  else {
    const ms = (value: number) => `${value.toFixed(1)} ms`
    const ratio = ({ ms: mine, floorMs }: Beside) => `${ms(mine)} ${(mine / floorMs).toFixed(1)}x`
    const row = (name: string, of: (tier: TierBench) => string, must = '') =>
      console.log(`${name.padEnd(42)}${of(browser).padStart(16)}${of(desktop).padStart(16)}   ${must}`)
    console.log(`${'p50'.padEnd(42)}${'browser'.padStart(16)}${'desktop'.padStart(16)}   goal`)
    row('boot in a running box', (tier) => ms(tier.bootMs), '500 / 3000 ms')
    row('reset: fresh context / fresh desktop', (tier) => ms(tier.resetMs), '500 ms')
    row('picture of the whole screen by itself', (tier) => ratio(tier.picture), '15 ms')
    row('  floor: CDP, Page.captureScreenshot', (tier) => ms(tier.picture.floorMs))
    row('picture of a step, once all is at rest', (tier) => ms(tier.pictureOfStepMs), '15 ms')
    row('move', (tier) => ratio(tier.move), '5 ms')
    row('click', (tier) => ratio(tier.click), '5 ms')
    row('key', (tier) => ratio(tier.key), '5 ms')
    row('  floor: a round trip to the browser', (tier) => ms(tier.move.floorMs))
    row('step with picture, less rest', (tier) => ms(tier.stepOverheadMs), '100 ms')
    row('memory', (tier) => `${tier.memoryMb.toFixed(0)} MB`, '120 / 200 MB')
    row('  floor: a command in the box', (tier) => ms(tier.execMs))
    console.log(`${sessions} rollouts at once: ${together.faults} without reward 1, ${together.seconds.toFixed(1)} s`)
  }
}
