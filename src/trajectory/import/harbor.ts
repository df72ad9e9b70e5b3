import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { readAtifFile } from './atif.ts'
import type { ImportedTrajectory } from './contract.ts'
import { parsed } from './parsed.ts'

const result = z.looseObject({
  task_name: z.string(),
  task_checksum: z.string().nullish(),
  trial_name: z.string().nullish(),
  verifier_result: z.looseObject({ rewards: z.record(z.string(), z.number()).nullish() }).nullish(),
  exception_info: z.looseObject({ exception_type: z.string().nullish() }).nullish(),
})

/** Where a trial of Harbor has its trajectory. */
export const harborTrajectory = join('agent', 'trajectory.json')

/** Whether a `result.json` is that of a trial; a job has one too. */
export async function isTrialResult(file: string): Promise<boolean> {
  try {
    return result.safeParse(JSON.parse(await readFile(file, 'utf8'))).success
  } catch {
    return false
  }
}

/**
 * A trial of a job of Harbor: `result.json` beside `agent/trajectory.json`. Its reward is the verifier's `reward`, or the only number
 * that there is; a trial that ended in an exception has none, whatever its verifier said.
 */
export async function harborTrial(file: string, place: string, files: Set<string>): Promise<ImportedTrajectory> {
  const resultFile = join(dirname(dirname(file)), 'result.json')
  const value = parsed(result, await readFile(resultFile, 'utf8'), `${place}: result.json`)
  const trajectory = await readAtifFile(file, place, files)
  const rewards = value.verifier_result?.rewards ?? {}
  const [only, ...others] = Object.values(rewards)
  const failed = value.exception_info?.exception_type ?? null
  return {
    ...trajectory,
    task: { name: value.task_name, instruction: null, ...(value.task_checksum ? { digest: value.task_checksum } : {}) },
    reward: failed === null ? (rewards.reward ?? (others.length === 0 ? (only ?? null) : null)) : null,
    labels: {
      ...trajectory.labels,
      ...(value.trial_name ? { trial: value.trial_name } : {}),
      ...(failed === null ? {} : { exception: failed }),
    },
  }
}
