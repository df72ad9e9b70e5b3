import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PaddockError, sha256 } from '../../../../core/index.ts'
import type { Box } from '../../../../sandbox/index.ts'
import type { Environment, ScriptStep } from '../../../contract.ts'
import { defineEnvironment, type TaskOf } from '../../../define.ts'
import { steps } from '../../apps/index.ts'
import { guiBox, guiPrompt, guiTools, openAttempt } from '../../attempt.ts'
import { toArtifact } from '../../record.ts'
import type { GuiSession } from '../../session.ts'
import { guiVerifierVersion } from '../../verify.ts'
import { oracleScript } from '../set.ts'
import { type MiniwobData, miniwobDataSchema } from './data.ts'
import { type MiniwobSite, miniwobSite } from './site.ts'
import { verifyEpisode } from './verify.ts'

/** Longest wait for a page to start its episode. */
const startMs = 20_000

const sites = new WeakMap<Box, MiniwobSite>()

/** Pages of MiniWoB++, served by the host, each attempt one episode on its seed. */
export const miniwobEnvironment: Environment = defineEnvironment({
  name: 'gui',
  apiVersion: 1,
  verifierVersion: guiVerifierVersion,
  task: miniwobDataSchema,
  load: async () => [],
  box: () => guiBox('browser'),
  setup: async ({ task, box }) => {
    const { page, sha256: digest } = task.data
    const read = (file: string) => readFile(join(task.source, file), 'utf8')
    if (sha256(`${await read('core/core.js')}\0${await read(page)}`) !== digest) {
      throw new PaddockError('TASK_INVALID', `The page ${page} is another than when the task was loaded`, {
        data: { file: join(task.source, page) },
        fix: 'Load the tasks again.',
      })
    }
    await attemptOf(task, box)
    await sites.get(box)?.started(startMs)
  },
  tools: (task) => guiTools(task.data, (box) => attemptOf(task, box)),
  systemPrompt: () => guiPrompt,
  collect: async ({ task, box }) => {
    const session = await attemptOf(task, box)
    const record = session.record()
    await session.close()
    return { items: [toArtifact(record)] }
  },
  verify: verifyEpisode,
  scripts: {
    oracle: async (task) => oracleScript(task),
    cheats: async ({ data }) => [{ name: 'ends-it-by-hand', weight: 1, script: { steps: cheats(data) } }],
  },
})

/** The known hacks of MiniWoB++: the address bar, its globals, a forged report, loading the page again. */
function cheats({ page }: MiniwobData): readonly ScriptStep[] {
  const { go, look, write, done } = steps
  return [
    look(),
    go('javascript:core.endEpisode(1,false,"")'),
    write('WOB_REWARD_GLOBAL=1;WOB_RAW_REWARD_GLOBAL=1;WOB_DONE_GLOBAL=true'),
    go(`http://miniwob.test/paddock/episode?what=end&raw=1`),
    go(`http://miniwob.test/${page}?reward=1`),
    done(),
  ]
}

function attemptOf(task: TaskOf<MiniwobData>, box: Box): Promise<GuiSession> {
  return openAttempt(box, task.data, () => {
    const site = miniwobSite(task.source, task.data)
    sites.set(box, site)
    return site
  })
}
