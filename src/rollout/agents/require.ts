import { PaddockError, type Task } from '../../core/index.ts'
import type { Environment, TaskAgents } from '../../envs/index.ts'
import type { Proxy } from '../../proxy/index.ts'
import type { Harness } from '../harnesses/contract.ts'
import { againOf } from '../user/index.ts'

/** The harness of each agent that has one of its own, by the agent's name. */
export type AgentHarnesses = Readonly<Record<string, Harness>>

/** Throws `POLICY_UNKNOWN` for a task with an agent that has no policy, `AGENTS_UNFIT` where they cannot work as it asks. */
export function requireAgents(
  environment: Environment,
  task: Task,
  o: { readonly harness: Harness; readonly own: AgentHarnesses; readonly policies: Proxy['policies'] },
): void {
  const agents = environment.agents(task)
  if (agents === null) return
  const known = o.policies.map(({ name }) => name)
  for (const { name, tools = [] } of agents.agents) {
    if (!known.includes(name)) {
      const are = known.length === 0 ? 'none is configured' : `there are ${known.join(', ')}`
      throw new PaddockError('POLICY_UNKNOWN', `Task ${task.name} needs a policy for its agent ${name}, and ${are}.`, {
        data: { policy: name, known },
      })
    }
    const offered = environment.tools(task).map((tool) => tool.name)
    const missing = tools.find((tool) => !offered.includes(tool))
    if (missing !== undefined) {
      throw new PaddockError(
        'TASK_INVALID',
        `Task ${task.name}: its agent ${name} is offered ${missing}, which is no tool of it`,
      )
    }
  }
  if (environment.steps(task) !== null) throw unfit(task, 'has several steps', 'Make a task of each step.')
  if (environment.user(task) !== null) throw unfit(task, 'has a user', 'Make the user one of the agents.')
  requireHarnesses(agents, task, o)
}

function requireHarnesses(
  agents: TaskAgents,
  task: Task,
  { harness, own }: { readonly harness: Harness; readonly own: AgentHarnesses },
): void {
  const all = agents.agents.map(({ name }) => own[name] ?? harness)
  const elsewhere = all.find(({ place }) => place !== harness.place)
  if (elsewhere !== undefined) {
    throw unfit(
      task,
      `has an agent of ${elsewhere.name}, which does not run where ${harness.name} does`,
      'Take harnesses of one place.',
    )
  }
  if (agents.by === 'program') return
  const deaf = all.find((one) => (one.place === 'box' ? againOf(one) === null : one.converses !== true))
  if (deaf === undefined) return
  throw unfit(task, `lets agents take turns, and ${deaf.name} ${deaf.version} cannot be asked again`, undefined)
}

function unfit(task: Task, what: string, fix: string | undefined): PaddockError {
  return new PaddockError(
    'AGENTS_UNFIT',
    `Task ${task.name} needs several agents and ${what}`,
    fix === undefined ? {} : { fix },
  )
}
