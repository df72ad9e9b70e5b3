import { PaddockError } from '../../core/index.ts'
import { withoutExcluded } from '../artifacts.ts'
import { collectFilesystem } from '../filesystem.ts'
import { collectSigns } from '../tamper.ts'
import type { ArtifactItem, Artifacts, BoxContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/**
 * Ends the agent's background work, runs the collect hooks, freezes the box and takes the declared artifacts, and with
 * shared verification all files; and notes what the agent left there that has no honest use.
 * A hook that fails is told to the events and leaves its file missing, which the tests then see: the agent may have
 * broken what the hook needs, and that is no fault of ours.
 */
export async function collectArtifacts(
  context: Omit<BoxContext, 'task'> & { readonly task: TaskOf<TerminalData> },
): Promise<Artifacts> {
  const { box, task, signal } = context
  await box.killBackground()
  for (const hook of task.data.collect) {
    const result = await box.exec(
      {
        command: hook.command,
        env: hook.env,
        timeoutMs: hook.timeoutMs,
        eventRole: 'verifier',
        ...(hook.user === null ? {} : { user: hook.user }),
      },
      { signal },
    )
    if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  }
  await box.freeze()
  const items: ArtifactItem[] = []
  for (const { source, exclude } of task.data.artifacts) {
    signal.throwIfAborted()
    items.push({ path: source, content: withoutExcluded(await box.getFiles(source), exclude) })
  }
  const signs = await collectSigns(box, items, {
    verifier: verifierPlaces,
    work: [task.data.agent.workdir, ...task.data.artifacts.map(({ source }) => source), '/tmp'],
    protected: task.data.protected ?? [],
  })
  if (task.data.verifier.shared !== true) return { items: [...items, ...signs] }
  const kept = await collectFilesystem(box)
  return { ...kept, items: [...items, ...signs, ...kept.items] }
}

/** Directories of the format that only a verifier has. */
const verifierPlaces = ['/logs/verifier', '/tests', '/solution']
