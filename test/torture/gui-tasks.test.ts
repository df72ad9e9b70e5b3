/**
 * What `paddock validate` demands, of all gui tasks of our own on five seeds: the oracle scores 1 and twice the same, doing
 * nothing, a near miss and every cheat score less, and so does an agent that acts at random. Several browsers side by
 * side, a fresh context for each script in place of a box.
 */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Task } from '../../src/core/index.ts'
import { GuiBrowser } from '../../src/envs/gui/browser/index.ts'
import { guiDataSchema } from '../../src/envs/gui/data.ts'
import { allCheatsOf } from '../../src/envs/gui/scripts.ts'
import { type GuiRecord, toArtifact } from '../../src/envs/gui/record.ts'
import { GuiSession } from '../../src/envs/gui/session.ts'
import { tabSurface } from '../../src/envs/gui/surface.ts'
import { browserTools, computerTool, fileTools, terminalTool } from '../../src/envs/gui/tools/index.ts'
import { placeWorkspace } from '../../src/envs/gui/workspace.ts'
import { openTaskBox, type ScriptStep, validateTasks } from '../../src/envs/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { sized } from './size.ts'
import { appSite } from '../../src/envs/gui/application/index.ts'
import { appsByName } from '../../src/envs/gui/plugins.ts'
import { builtInGui, guiApps } from '../../src/builtin/index.ts'

const apps = appsByName(guiApps)
const gui = builtInGui({ trustTasks: false })

const lanes = 3
const seeds = sized([1, 2, 3, 4, 5], [1])
const examples = new URL('../../examples/tasks/gui', import.meta.url).pathname
const all = (await gui.load(examples)).filter(({ data }) => guiDataSchema.parse(data).tier === 'browser')
const dataOf = ({ data }: Task) => guiDataSchema.parse(data)
/** Those that need no other program beside the browser: they run in a tab. */
const inTab = [...apps.values()].filter(({ beside }) => beside === null).map(({ name }) => name)
const signal = new AbortController().signal

/** A box with its browser, which runs one attempt after the other. */
class Lane {
  readonly #box: Box
  #browser: GuiBrowser | null = null

  constructor(box: Box) {
    this.#box = box
  }

  async script(task: Task, steps: readonly ScriptStep[]): Promise<GuiRecord> {
    const { app, seed, screen, image } = dataOf(task)
    const found = apps.get(app)
    if (found === undefined) throw new Error(app)
    const site = appSite(found, seed)
    if (this.#browser === null) this.#browser = await GuiBrowser.open(this.#box, { screen, site })
    else await this.#browser.reset(site)
    const surface = tabSurface(this.#browser, screen)
    await surface.settle()
    const session = new GuiSession({ surface, site, image, maxActions: null })
    await placeWorkspace(this.#box, found.workspace(seed) ?? {})
    const sessionOf = async () => session
    const tools = [
      ...browserTools(sessionOf),
      ...fileTools(sessionOf),
      terminalTool(sessionOf),
      computerTool(screen, sessionOf),
    ]
    for (const step of steps) {
      if (!('tool' in step)) continue
      const tool = tools.find(({ name }) => name === step.tool)
      await tool?.run({ task, attempt: { id: 'attempt' }, box: this.#box, signal }, step.args)
    }
    return session.record()
  }
}

let sandbox: SandboxProvider
const free: Lane[] = []
const waiting: ((lane: Lane) => void)[] = []

/** On the next lane that is free. */
async function ran(task: Task, steps: readonly ScriptStep[]) {
  const lane = free.pop() ?? (await new Promise<Lane>((take) => waiting.push(take)))
  try {
    const record = await lane.script(task, steps)
    const openBox = () => Promise.reject(new Error('no box is needed'))
    const artifacts = { items: [toArtifact(record)] }
    const verdict = await gui.verify({ task, artifacts, openBox, signal, emit: () => undefined })
    return { record, verdict }
  } finally {
    const next = waiting.shift()
    if (next === undefined) free.push(lane)
    else next(lane)
  }
}

beforeAll(async () => {
  sandbox = dockerProvider()
  const [task] = all
  if (task === undefined) throw new Error(examples)
  for (let at = 0; at < lanes; at += 1) {
    free.push(new Lane(await openTaskBox(sandbox, gui.box(task), { labels: { role: 'probe' }, signal })))
  }
})
afterAll(() => sandbox.close())

it('there are at least 40 goals, each on five seeds', () => {
  const goals = Map.groupBy(all, (task) => `${dataOf(task).app} ${dataOf(task).goal}`)
  expect(goals.size).toBeGreaterThanOrEqual(40)
  for (const of of goals.values()) expect(of.map((task) => dataOf(task).seed)).toEqual([1, 2, 3, 4, 5])
  expect(new Set(all.map((task) => dataOf(task).app))).toEqual(new Set(inTab))
})

describe.each(inTab)('the app %s', (app) => {
  const mine = all.filter((task) => dataOf(task).app === app)

  it(`is proven on the seeds ${seeds.join(', ')}`, async () => {
    const oracles = new Map<Task, GuiRecord>()
    const rows = await validateTasks({
      environment: gui,
      tasks: mine.filter((task) => seeds.includes(dataOf(task).seed)),
      sandbox,
      signal,
      parallel: lanes,
      attempt: async ({ task, script }) => {
        const { record, verdict } = await ran(task, script.script.steps)
        // The second time not only the verdict is the same.
        const before = oracles.get(task)
        if (script.name === 'oracle' && before !== undefined) expect(isDeepStrictEqual(record, before)).toBe(true)
        if (script.name === 'oracle') oracles.set(task, record)
        return verdict
      },
    })
    expect(rows.filter(({ status }) => status !== 'proven').map(({ name, problems }) => [name, problems])).toEqual([])
    // A near miss is no part of a success either.
    const near = rows.flatMap(({ proofs }) => proofs.filter(({ role }) => role === 'distractor'))
    expect(near.filter(({ verdict }) => verdict.reward !== 0)).toEqual([])
  })

  it(`gives nothing to any cheat, on ${sized('every goal', 'the first goal')} of a seed`, async () => {
    // Each other goal has met one cheat where it was proven.
    const goals = mine.filter((task) => dataOf(task).seed === 1)
    const jobs = sized(goals, goals.slice(0, 1)).flatMap((task) => allCheatsOf(app).map((cheat) => ({ task, cheat })))
    await Promise.all(
      jobs.map(async ({ task, cheat }) => {
        const { record, verdict } = await ran(task, cheat.script.steps)
        const { start } = apps.get(app)?.plan(dataOf(task).goal, 1) ?? { start: null }
        const found = { task: task.name, cheat: cheat.name, reward: verdict.reward, state: record.state }
        expect(found).toEqual({ task: task.name, cheat: cheat.name, reward: 0, state: start })
      }),
    )
  })

  it('gives nothing to an agent that acts at random', async () => {
    const tasks = mine.filter((task) => dataOf(task).seed === 2)
    const verdicts = await Promise.all(
      sized(tasks, tasks.slice(0, 1)).map(async (task, at) => {
        const { verdict } = await ran(task, randomSteps(20261121 + app.length + at, 25, dataOf(task).screen))
        return [task.name, verdict.reward]
      }),
    )
    expect(verdicts.filter(([, reward]) => reward !== 0)).toEqual([])
  })
})

/** Clicks, drags, keys and words, from a fixed seed. */
function randomSteps(seed: number, count: number, screen: { readonly width: number; readonly height: number }) {
  let state = seed
  const below = (n: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
  const point = () => ({ x: below(screen.width), y: below(screen.height) })
  return Array.from({ length: count }, (): ScriptStep => {
    const args = [
      { action: 'click', ...point() },
      { action: 'drag', path: [point(), point()] },
      { action: 'key', keys: ['Tab', 'Enter', 'Delete', 'Down'][below(4)] },
      { action: 'type', text: ['a', '7', 'x y'][below(3)] },
      { action: 'double_click', ...point() },
    ][below(5)]
    return { tool: 'computer', args: args ?? {} }
  })
}
