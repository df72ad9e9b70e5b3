import { PaddockError, type Task } from '../../core/index.ts'
import type { Environment, TaskUser } from '../../envs/index.ts'
import type { Harness } from '../harnesses/contract.ts'
import { askUserName } from './ask-tool.ts'

/** How the agent's words come to the user of its task with this harness. Throws `USER_UNFIT`. */
export function wayOf({ way }: Pick<TaskUser, 'way'>, harness: Harness): 'turns' | 'tool' {
  const turns = harness.place === 'box' ? againOf(harness) !== null : harness.converses === true
  const tool = harness.actsInText !== true && (harness.place === 'box' || harness.box === 'tools')
  if (way !== 'tool' && turns) return 'turns'
  if (way !== 'turns' && tool) return 'tool'
  const { name, version } = harness
  const lacks = way === 'turns' ? 'be asked again in the same conversation' : 'call tools'
  throw new PaddockError(
    'USER_UNFIT',
    `The user of the task is spoken to by ${way}, and ${name} ${version} cannot ${lacks}`,
    {
      fix: 'Use another harness, or give a `shell` preset its `again`, or let the user of the task take `way: any`.',
    },
  )
}

/** How a harness in a box is asked again in its last conversation; null: nobody knows. */
export function againOf(harness: Extract<Harness, { place: 'box' }>): Pick<typeof harness, 'configure'> | null {
  return harness.again ?? harness.resumes ?? null
}

/** Throws `USER_UNFIT` for a task whose user could not be spoken to, `USER_ENGINE_NONE` where nothing simulates it. */
export function requireUser(
  environment: Environment,
  task: Task,
  { harness, hasEngine }: { readonly harness: Harness; readonly hasEngine: boolean },
): void {
  const user = environment.user(task)
  if (user === null) return
  const unfit = (what: string, fix: string) => new PaddockError('USER_UNFIT', `Task ${task.name} ${what}`, { fix })
  if (environment.steps(task) !== null) throw unfit('has several steps and a user', 'Make a task of each step.')
  if (wayOf(user, harness) === 'tool' && environment.tools(task).some(({ name }) => name === askUserName)) {
    throw unfit(`has a user and a tool ${askUserName} of its own`, 'Rename the tool.')
  }
  if (user.by === 'record' || hasEngine) return
  throw new PaddockError('USER_ENGINE_NONE', `Nothing simulates the user of task ${task.name}`)
}
