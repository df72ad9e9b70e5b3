import { posix } from 'node:path'
import { PaddockError } from '../../core/index.ts'
import { withoutExcluded } from '../artifacts.ts'
import type { OutsideWork } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** The declared artifacts of a task, brought by somebody else than its box. Throws `TASK_UNSUPPORTED`. */
export function outsideWork({ name, data }: TaskOf<TerminalData>): OutsideWork {
  if (data.verifier.shared === true) throw unsupported(name, 'it is verified on all files of the box it was done in')
  if (data.steps !== undefined) throw unsupported(name, 'its steps are verified one after the other in one box')
  const excluded = new Map<string, readonly string[]>()
  for (const { source, exclude } of data.artifacts) {
    const place = posix.isAbsolute(source) ? source : data.agent.workdir && posix.resolve(data.agent.workdir, source)
    if (place === null) throw unsupported(name, `its image alone knows where ${source} is`)
    const path = posix.resolve(place)
    if (path === '/') throw unsupported(name, 'all files of the box are its work')
    excluded.set(path, exclude)
  }
  return {
    places: [...excluded.keys()],
    artifacts: ({ items, answer }) => {
      if (answer === null) {
        return {
          items: items.map((one) => ({ ...one, content: withoutExcluded(one.content, excluded.get(one.path) ?? []) })),
        }
      }
      throw new PaddockError('WORK_REFUSED', `Task ${name} takes files, and no answer.`, {
        fix: `Bring an archive of ${[...excluded.keys()].join(', ')}.`,
      })
    },
  }
}

function unsupported(task: string, why: string): PaddockError {
  return new PaddockError('TASK_UNSUPPORTED', `Task ${task}: work from elsewhere cannot be verified: ${why}`, {
    fix: 'Let Paddock do its rollouts, or take a task whose artifacts are declared and verified separately.',
  })
}
