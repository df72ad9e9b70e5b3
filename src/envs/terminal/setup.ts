import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { PaddockError, systemClock } from '../../core/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { BoxContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'
import { directoryOf, ownFolder } from './folders.ts'
import { scriptCommand } from './shebang.ts'

/**
 * Makes the folders of the format; for a step, puts its `workdir/` into the work directory and runs the `setup.sh` in it,
 * which is gone afterwards; then waits until the health check passes. Throws `TASK_NOT_READY`.
 */
export async function setUp(
  context: Omit<BoxContext, 'task'> & { readonly task: TaskOf<TerminalData> },
): Promise<void> {
  const { box, task, signal } = context
  if (task.data.files !== undefined) await putWork(box, task, signal)
  await box.putFiles('/logs', [
    { path: 'agent/', data: '' },
    { path: 'artifacts/', data: '' },
  ])
  if (task.data.step !== undefined) await prepareStep(box, task, signal)
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

/**
 * What a task that carries its files gives its agent to work on. Not over a copy of a box in which that stands, with what an agent made
 * of it: the folders of the format are there then, and are root's.
 */
async function putWork(box: Box, task: TaskOf<TerminalData>, signal: AbortSignal): Promise<void> {
  const stands = await box.exec({ command: ['/usr/bin/test', '-e', '/logs'], cwd: '/', eventRole: 'setup' }, { signal })
  if (stands.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${stands.why.detail}`)
  if (stands.kind === 'exited' && stands.code === 0) return
  const { files } = await directoryOf(task, 'workdir')
  if (files !== null) await box.putFiles(box.workdir, files)
}

async function prepareStep(box: Box, task: TaskOf<TerminalData>, signal: AbortSignal): Promise<void> {
  const { files, names } = await directoryOf(task, join(ownFolder(task), 'workdir'))
  if (files === null) return
  await box.putFiles(box.workdir, files)
  if (!names.includes('setup.sh')) return
  const script = '"$@"; code=$?; rm -f setup.sh; exit $code'
  const command = ['/bin/sh', '-c', script, 'sh', ...scriptCommand('./setup.sh')]
  const result = await box.exec({ command, timeoutMs: 300_000, eventRole: 'setup', background: 'keep' }, { signal })
  if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  if (result.kind === 'exited' && result.code === 0) return
  const said = new TextDecoder().decode(result.stderr).trim().slice(-400)
  throw new PaddockError('TASK_NOT_READY', `Task ${task.name}: its setup.sh failed: ${said}`, {
    data: { task: task.name },
  })
}
