import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Box, gui, PaddockError, type ScriptStep, sha256, type TaskOf } from '../../../../kits/environment.ts'
import { type MiniwobData, miniwobDataSchema } from './data.ts'
import { readMiniwob } from './load.ts'
import { type MiniwobSite, miniwobSite } from './site.ts'
import { verifyEpisode } from './verify.ts'

/** Longest wait for a page to start its episode. */
const startMs = 20_000

const sites = new WeakMap<Box, MiniwobSite>()

/**
 * Pages of MiniWoB++, served by the host, each attempt one episode on its seed: https://github.com/Farama-Foundation/miniwob-plusplus
 * (MIT), read at 3f461ff; nothing of it is in this repository.
 */
export const miniwob = gui.defineImporter({
  name: 'miniwob',
  apiVersion: 1,
  verifierVersion: gui.verifierVersion,
  task: miniwobDataSchema,
  read: readMiniwob,
  attempt: attemptOf,
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
  verify: verifyEpisode,
  scripts: {
    oracle: async (task) => gui.oracleScript(task),
    cheats: async ({ data }) => [{ name: 'ends-it-by-hand', weight: 1, script: { steps: cheats(data) } }],
  },
})

/** The known hacks of MiniWoB++: the address bar, its globals, a forged report, loading the page again. */
function cheats({ page }: MiniwobData): readonly ScriptStep[] {
  const { go, look, write, done } = gui.steps
  return [
    look(),
    go('javascript:core.endEpisode(1,false,"")'),
    write('WOB_REWARD_GLOBAL=1;WOB_RAW_REWARD_GLOBAL=1;WOB_DONE_GLOBAL=true'),
    go(`http://miniwob.test/paddock/episode?what=end&raw=1`),
    go(`http://miniwob.test/${page}?reward=1`),
    done(),
  ]
}

function attemptOf(task: TaskOf<MiniwobData>, box: Box): Promise<gui.GuiSession> {
  return gui.openAttempt(box, task.data, () => {
    const site = miniwobSite(task.source, task.data)
    sites.set(box, site)
    return site
  })
}
