import { PaddockError } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { Environment, Tool } from '../contract.ts'
import { defineEnvironment, type TaskOf } from '../define.ts'
import { type App, type AppSite, appSite } from './application/index.ts'
import { guiBox, guiPrompt, guiTools, openAttempt } from './attempt.ts'
import { type GuiData, guiDataSchema } from './data.ts'
import { loadGuiTasks, planOf } from './load.ts'
import { cheatOf, distractorsOf, oracleOf } from './scripts.ts'
import { toArtifact } from './record.ts'
import type { GuiSession } from './session.ts'
import { terminalTool } from './tools/index.ts'
import { guiVerifierVersion, verifyRecord } from './verify.ts'
import { filesOf, placeWorkspace } from './workspace.ts'

const sites = new WeakMap<Box, AppSite>()

/**
 * Tasks of applications in a real browser: the agent sees screenshots or the accessibility tree and acts with mouse and
 * keyboard. The browser runs in the box; the applications, their state and the record of the attempt are on the host.
 */
export function appEnvironment(apps: ReadonlyMap<string, App>): Environment {
  const appOf = ({ app }: GuiData): App => {
    const found = apps.get(app)
    if (found === undefined)
      throw new PaddockError('TASK_INVALID', `There is no app ${app}`, {
        data: { app },
        fix: 'List it under gui.apps in paddock.config.ts.',
      })
    return found
  }
  const attemptOf = ({ data }: TaskOf<GuiData>, box: Box): Promise<GuiSession> => {
    const app = appOf(data)
    return openAttempt(box, { ...data, beside: app.beside }, () => {
      const site = appSite(app, data.seed)
      sites.set(box, site)
      return site
    })
  }
  const scoresFiles = (data: GuiData) => planOf(apps, data).files !== null
  return defineEnvironment({
    name: 'gui',
    apiVersion: 1,
    verifierVersion: guiVerifierVersion,
    task: guiDataSchema,
    load: (path, o) => loadGuiTasks(path, apps, o),
    box: ({ data }) => guiBox(data.tier),
    setup: async ({ task, box }) => {
      const files = appOf(task.data).workspace(task.data.seed)
      if (files !== null) await placeWorkspace(box, files)
      await attemptOf(task, box)
    },
    tools: (task) => {
      const session = (box: Box) => attemptOf(task, box)
      const app = appOf(task.data)
      const needsTerminal = app.beside === null && app.workspace(task.data.seed) !== null
      const terminal = needsTerminal ? [terminalTool(({ box }) => session(box))] : []
      return [...terminal, ...appTools(app, task.data.seed, session), ...guiTools(task.data, session)]
    },
    systemPrompt: () => guiPrompt,
    collect: async ({ task, box }) => {
      const session = await attemptOf(task, box)
      const record = session.record()
      await session.close()
      return { items: [toArtifact(scoresFiles(task.data) ? { ...record, files: await filesOf(box) } : record)] }
    },
    verify: (context) => verifyRecord(context, planOf(apps, context.task.data)),
    scripts: {
      oracle: async ({ data }) => oracleOf(planOf(apps, data), data),
      cheats: async ({ data }) => cheatOf(data),
      distractors: async ({ data }) => distractorsOf(planOf(apps, data), data),
    },
  })
}

/** The app's own tools; what they do is done to the state of the attempt in the call's box, one action after the other. */
function appTools(app: App, seed: number, sessionOf: (box: Box) => Promise<GuiSession>): readonly Tool[] {
  return app.open(seed).tools.map((shown) => ({
    ...shown,
    run: async (context, input) => {
      const session = await sessionOf(context.box)
      const tool = sites.get(context.box)?.tools.find(({ name }) => name === shown.name)
      if (tool === undefined) throw new RangeError(`The app ${app.name} has no tool ${shown.name} on seed ${seed}.`)
      return session.work('line', () => tool.run(context, input))
    },
  }))
}
