import { setTimeout as sleep } from 'node:timers/promises'
import { PaddockError, systemClock } from '../../core/index.ts'
import type { BoxContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** Makes the folders of the format and waits until the task's health check passes. Throws `TASK_NOT_READY`. */
export async function setUp(
  context: Omit<BoxContext, 'task'> & { readonly task: TaskOf<TerminalData> },
): Promise<void> {
  const { box, task, signal } = context
  for (const directory of ['/logs/agent', '/logs/artifacts']) await box.putFiles(directory, [])
  const check = task.data.agent.healthcheck
  if (check === null) return
  // Docker's HEALTHCHECK: failures inside the start period do not count, afterwards `retries` in a row are final.
  const start = systemClock.monotonic()
  let failures = 0
  let last = ''
  while (failures < check.retries) {
    const result = await box.exec(
      { command: check.command, timeoutMs: check.timeoutMs, eventRole: 'setup', background: 'keep' },
      { signal },
    )
    if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
    if (result.kind === 'exited' && result.code === 0) return
    last = new TextDecoder().decode(result.stderr).trim().slice(-400)
    const starting = systemClock.monotonic() - start < check.startPeriodMs
    if (!starting) failures += 1
    if (failures < check.retries) await sleep(starting ? check.startIntervalMs : check.intervalMs, null, { signal })
  }
  throw new PaddockError('TASK_NOT_READY', `Task ${task.name}: the health check failed ${failures} times: ${last}`, {
    data: { task: task.name },
  })
}
