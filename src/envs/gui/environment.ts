import { PaddockError } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { Environment } from '../contract.ts'
import { defineEnvironment, type TaskOf } from '../define.ts'
import { apps, appSite } from './apps/index.ts'
import { guiBox, guiPrompt, guiTools, openAttempt } from './attempt.ts'
import { type GuiData, guiDataSchema } from './data.ts'
import { loadGuiTasks, planOf } from './load.ts'
import { cheatOf, distractorsOf, oracleOf } from './scripts.ts'
import { toArtifact } from './record.ts'
import type { GuiSession } from './session.ts'
import { terminalTool } from './tools/index.ts'
import { guiVerifierVersion, verifyRecord } from './verify.ts'
import { filesOf, placeWorkspace } from './workspace.ts'

/**
 * Tasks in a real browser: the agent sees screenshots or the accessibility tree and acts with mouse and keyboard. The
 * browser runs in the box; the applications, their state and the record of the attempt are on the host.
 */
export const gui: Environment = defineEnvironment({
  name: 'gui',
  apiVersion: 1,
  verifierVersion: guiVerifierVersion,
  task: guiDataSchema,
  load: (path) => loadGuiTasks(path),
  box: ({ data }) => guiBox(data.tier),
  setup: async ({ task, box }) => {
    const files = apps.get(task.data.app)?.workspace(task.data.seed) ?? null
    if (files !== null) await placeWorkspace(box, files)
    await attemptOf(task, box)
  },
  tools: (task) => {
    const session = (box: Box) => attemptOf(task, box)
    const app = apps.get(task.data.app)
    const needsTerminal = app?.beside === null && app.workspace(task.data.seed) !== null
    const terminal = needsTerminal ? [terminalTool(({ box }) => session(box))] : []
    return [...terminal, ...guiTools(task.data, session)]
  },
  systemPrompt: () => guiPrompt,
  collect: async ({ task, box }) => {
    const session = await attemptOf(task, box)
    const record = session.record()
    await session.close()
    return { items: [toArtifact(scoresFiles(task.data) ? { ...record, files: await filesOf(box) } : record)] }
  },
  verify: (context) => verifyRecord(context, planOf(context.task.data)),
  scripts: {
    oracle: async ({ data }) => oracleOf(planOf(data), data),
    cheats: async ({ data }) => cheatOf(data),
    distractors: async ({ data }) => distractorsOf(planOf(data), data),
  },
})

function scoresFiles(data: GuiData): boolean {
  return planOf(data).files !== null
}

function attemptOf({ data }: TaskOf<GuiData>, box: Box): Promise<GuiSession> {
  const found = apps.get(data.app)
  if (found === undefined) throw new PaddockError('TASK_INVALID', `There is no app ${data.app}`)
  return openAttempt(box, { ...data, beside: found.beside }, () => appSite(found, data.seed))
}
