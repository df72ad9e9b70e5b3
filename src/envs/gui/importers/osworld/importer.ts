import { dirname, resolve } from 'node:path'
import { type Box, gui, type ScriptStep, type TaskOf } from '../../../../kits/environment.ts'
import { type OsworldData, osworldDataSchema } from './data.ts'
import { readOsworld } from './load.ts'
import { get } from './getters.ts'
import { leaseMachine } from './lease.ts'
import { runSteps, type Stage } from './setup.ts'
import { foundArtifact, verifyOsworld } from './verify.ts'

/** The machine of each box, with what its set-up left; for a machine of the user's also its session. */
const machines = new WeakMap<Box, Staged>()
interface Staged {
  readonly machine: gui.Machine & gui.MachineBrowser
  readonly cache: Map<string, Buffer>
  readonly remote: { readonly session: gui.MachineSession; release(): void } | null
}

const prompt =
  'You use a computer with a desktop and a web browser to do what the user asks. Look at its screen with a screenshot of ' +
  '`computer`, act step by step, and look at what came of it. When everything is done, end with `computer` and action ' +
  '"done"; when it cannot be done at all, with action "fail".'

/**
 * Tasks in OSWorld's files, on a desktop box of ours: task files of https://github.com/xlang-ai/OSWorld (Apache-2.0), read
 * in the copy ljxpython/OSWorldUse at b5007a9.
 */
export const osworld = gui.defineImporter({
  name: 'osworld',
  apiVersion: 1,
  verifierVersion: gui.verifierVersion,
  task: osworldDataSchema,
  read: readOsworld,
  hostProgram: ({ data }) => gui.programOf(data.sidecar),
  attempt: attemptOf,
  box: ({ data: { boxImage, machine } }) => {
    // Nothing of such an attempt happens in its box.
    if (machine !== null) return { ...gui.box('browser'), image: { kind: 'paddock-base' }, memoryMb: 256 }
    const needs = { ...gui.box('desktop'), memoryMb: 3072 }
    return boxImage === null ? needs : { ...needs, image: { kind: 'reference', reference: boxImage } }
  },
  setup: async ({ task, box, signal }) => {
    const { machine: address, maxActions } = task.data
    if (address === null) {
      const session = await attemptOf(task, box)
      machines.set(box, { machine: await gui.boxMachine(box, session.surface), cache: new Map(), remote: null })
    } else {
      const leased = await leaseMachine(address, signal)
      void box.died.then(() => leased.release())
      const session = new gui.MachineSession(leased.machine, maxActions)
      machines.set(box, {
        machine: leased.machine,
        cache: new Map(),
        remote: { session, release: () => leased.release() },
      })
    }
    await runSteps(task.data.config, stageOf(task, box, signal), 'before')
  },
  tools: (task) => {
    const { machine, screen, schema } = task.data
    if (machine === null) {
      return gui.tools(task.data, (box) => attemptOf(task, box)).filter(({ name }) => name === 'computer')
    }
    const session = async ({ box }: { readonly box: Box }) => remoteOf(box).session
    const adapter = gui.adapterOf(schema)
    return [adapter === null ? gui.computerTool(screen, session) : gui.adaptedTool(adapter, screen, session)]
  },
  systemPrompt: () => prompt,
  collect: async ({ task, box, signal }) => {
    const stage = stageOf(task, box, signal)
    const session = task.data.machine === null ? await attemptOf(task, box) : remoteOf(box).session
    const record = session.record()
    await runSteps(task.data.postconfig, stage, 'after')
    const pairs = []
    for (const { result, expected } of task.data.measures) {
      pairs.push({
        result: result === null ? null : await get(result, stage),
        expected: expected === null ? null : await get(expected, stage),
      })
    }
    await stage.machine[Symbol.asyncDispose]()
    if (session instanceof gui.MachineSession) remoteOf(box).release()
    else await session.close()
    return { items: [gui.toArtifact(record), foundArtifact(pairs)] }
  },
  verify: verifyOsworld,
  scripts: {
    oracle: async (task) => gui.oracleScript(task),
    cheats: async ({ data }) => [{ name: 'says-so', weight: 1, script: { steps: cheats(data) } }],
  },
})

/** Ends at once: with success claimed, or given up where the task can be done. */
function cheats({ measures }: OsworldData): readonly ScriptStep[] {
  const { computer, done } = gui.steps
  return [computer({ action: 'screenshot' }), measures.length === 0 ? done() : computer({ action: 'fail', reason: '' })]
}

function remoteOf(box: Box): NonNullable<Staged['remote']> {
  const remote = machines.get(box)?.remote
  if (remote === undefined || remote === null) throw new RangeError('The machine was not set up.')
  return remote
}

function stageOf(task: TaskOf<OsworldData>, box: Box, signal: AbortSignal): Stage {
  const known = machines.get(box)
  if (known === undefined) throw new RangeError('The machine was not set up.')
  const { id, assets } = task.data
  return {
    machine: known.machine,
    cache: known.cache,
    id,
    signal,
    assets: assets === null ? null : resolve(dirname(task.source), assets),
  }
}

function attemptOf(task: TaskOf<OsworldData>, box: Box): Promise<gui.GuiSession> {
  return gui.openAttempt(box, task.data, () => gui.forwardSite({ start: 'about:blank', origins: task.data.sites }))
}
