import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import {
  type Box,
  gui,
  type NamedScript,
  packArtifact,
  PaddockError,
  scored,
  sha256,
  type TaskOf,
  unscored,
} from '../../../../kits/environment.ts'
import { type CuaBenchData, cuaBenchDataSchema } from './data.ts'
import { readCuaBench } from './load.ts'
import { CuaModule } from './module.ts'
import { CuaSession } from './session.ts'
import { type CuaSite, cuaSite } from './site.ts'

/** The module of each box, with its session. */
const running = new WeakMap<Box, { readonly module: CuaModule; readonly session: CuaSession }>()
const sites = new WeakMap<Box, CuaSite>()

/** What only this process knows: with it, and not by a model, the tool `computer` runs the module's own solution. */
const solveWord = randomBytes(16).toString('hex')
const solving = z.object({ action: z.literal('solve'), word: z.literal(solveWord) })

/**
 * Tasks of cua-bench: windows of HTML, set up and judged by the user's Python on the host. Task modules of
 * https://github.com/trycua/cua (MIT), libs/cua-bench at b296ec9.
 */
export const cuaBench = gui.defineImporter({
  name: 'cua-bench',
  apiVersion: 1,
  verifierVersion: gui.verifierVersion,
  task: cuaBenchDataSchema,
  read: readCuaBench,
  hostProgram: ({ source }) => source,
  attempt: attemptOf,
  setup: async ({ task, box }) => {
    if (sha256(await readFile(task.source, 'utf8')) !== task.data.sha256) {
      throw new PaddockError('TASK_INVALID', `${task.source} is another than when the task was loaded`, {
        fix: 'Load the tasks again.',
      })
    }
    const attempt = await attemptOf(task, box)
    const site = sites.get(box)
    if (site === undefined) throw new RangeError('The attempt was opened elsewhere.')
    const session = new CuaSession(attempt, site)
    const module = await CuaModule.open(task.source)
    running.set(box, { module, session })
    // The box's end is the module's, whatever becomes of the attempt.
    void box.died.then(() => module[Symbol.asyncDispose]())
    await module.run('setup_task', task.data, (asked) => session.answer(asked))
  },
  tools: (task) =>
    gui
      .tools(task.data, (box) => attemptOf(task, box))
      .map((tool) => ({
        ...tool,
        run: async (context, input) => {
          const known = running.get(context.box)
          if (known === undefined || !solving.safeParse(input).success) return tool.run(context, input)
          await known.module.run('solve_task', task.data, (asked) => known.session.answer(asked))
          return { status: 'ok', text: 'The module has solved its task.' }
        },
      })),
  collect: async ({ task, box }) => {
    const attempt = await attemptOf(task, box)
    const record = attempt.record()
    const known = running.get(box)
    if (known === undefined) throw new RangeError('The module was not set up.')
    const { module, session } = known
    const result = await module.run('evaluate_task', task.data, (asked) => session.answer(asked))
    await module[Symbol.asyncDispose]()
    await attempt.close()
    return { items: [gui.toArtifact({ ...record, state: result })] }
  },
  verify: async ({ task, artifacts, signal }) => {
    signal.throwIfAborted()
    const { state, ended, actions } = gui.fromArtifacts(artifacts)
    const packed = await Promise.all(artifacts.items.map(packArtifact))
    const rewards = rewardsIn(state)
    const facts = {
      verifier: { id: `gui/cua-bench/${task.data.module}`, version: gui.verifierVersion, sha256: task.data.sha256 },
      trust: 'host' as const,
      components: Object.fromEntries((rewards ?? []).map((reward, at) => [`${at + 1}`, reward])),
      evidence: `evaluate_task gave ${JSON.stringify(state)}; the attempt was ${ended ?? 'not ended'} after ${actions} actions`,
      artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
    }
    const [reward] = rewards ?? []
    if (reward === undefined) return unscored('unscorable', 'evaluate_task gave no list of rewards from 0 to 1', facts)
    return scored(reward, facts)
  },
  scripts: {
    oracle: async (task) => (task.data.oracle === null && task.data.solves ? ownSolution : gui.oracleScript(task)),
    cheats: async () => [{ name: 'ends-at-once', weight: 1, script: { steps: [gui.steps.look(), gui.steps.done()] } }],
  },
})

/** The module solves the task by itself, before it is judged. */
const ownSolution: NamedScript = {
  name: 'solve_task',
  weight: 1,
  script: { steps: [{ tool: 'computer', args: { action: 'solve', word: solveWord } }, gui.steps.done()] },
}

/** As cua_bench/runners.py reads a result: a number, or the first of a list; the others are kept as components. */
function rewardsIn(result: unknown): readonly number[] | null {
  const one = z.number().min(0).max(1)
  return z.union([z.array(one).min(1), one.transform((reward) => [reward])]).safeParse(result).data ?? null
}

function attemptOf(task: TaskOf<CuaBenchData>, box: Box): Promise<gui.GuiSession> {
  return gui.openAttempt(box, task.data, () => {
    const { assets } = task.data
    const site = cuaSite(assets === null ? null : resolve(dirname(task.source), assets))
    sites.set(box, site)
    return site
  })
}
