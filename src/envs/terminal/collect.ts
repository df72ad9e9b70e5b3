import { posix } from 'node:path'
import { PaddockError } from '../../core/index.ts'
import { withoutExcluded } from '../artifacts.ts'
import { collectFilesystem } from '../filesystem.ts'
import { collectSigns } from '../tamper.ts'
import type { ArtifactItem, Artifacts, BoxContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'
import { testsOf } from './folders.ts'
import { workLimits, workPlaces } from './work-only.ts'

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
  const shared = task.data.verifier.shared === true
  const places = workPlaces(task, box)
  const excluded = new Map(
    task.data.artifacts.map(({ source, exclude }) => [posix.resolve(box.workdir, source), exclude]),
  )
  const items: ArtifactItem[] = []
  for (const path of places) {
    signal.throwIfAborted()
    const content = await box.getFiles(path, shared ? workLimits : {})
    items.push({ path, content: withoutExcluded(content, excluded.get(path) ?? []) })
  }
  const signs = await collectSigns(box, items, {
    verifier: verifierPlaces,
    work: [...new Set([box.workdir, ...excluded.keys(), ...(task.data.mayChange ?? [])])],
    protected: task.data.protected ?? [],
    instruction: task.instruction,
    programs: box.imagePath ?? [],
    shared,
    networked: (task.data.agent.setupNetwork ?? 'none') !== 'none' || task.data.agent.network !== 'none',
    readsProfiles: await readsProfiles(task),
  })
  if (!shared) return { items: [...items, ...signs] }
  const kept = await collectFilesystem(box)
  return { ...kept, items: [...items, ...signs, ...kept.items] }
}

/** Whether the tests of a task look as if they ran login shells, or read what those read. */
async function readsProfiles(task: TaskOf<TerminalData>): Promise<boolean> {
  const texts = await Promise.all((await testsOf(task)).map((directory) => directory.texts()))
  const reads = /\.bashrc|profile|\.local\/bin\/env|\b(?:ba|z|da)?sh["',\s]+-\w*[il]|--login|\bsu\s+-/
  return texts.flat().some((text) => reads.test(text))
}

/** Directories of the format that only a verifier has. */
const verifierPlaces = ['/logs/verifier', '/tests', '/solution']
