import { describe, expect, it } from 'vitest'
import { bareTask } from '../bare-task.ts'
import { referenceAgent, scriptHarness, shellHarness } from '../index.ts'
import type { Environment, TaskAgents } from '../../envs/index.ts'
import { type AgentHarnesses, requireAgents } from './require.ts'

const task = bareTask({ name: 'vault', instruction: 'Open it.' })
const names = (...all: string[]) => all.map((name) => ({ name, trained: true, model: null, isShared: true }))
const turns: TaskAgents = {
  by: 'turns',
  maxTurns: 4,
  agents: [
    { name: 'opener', prompt: 'Open.' },
    { name: 'guide', prompt: 'Guide.', tools: [] },
  ],
}

function environment(agents: TaskAgents, more: object = {}): Environment {
  return {
    agents: () => agents,
    tools: () => [],
    steps: () => null,
    user: () => null,
    ...more,
  } as unknown as Environment
}

describe('tasks that need several agents', () => {
  const harness = referenceAgent()
  it('are refused where an agent has no policy, with those that there are', () => {
    expect(() => requireAgents(environment(turns), task, { harness, own: {}, policies: names('opener') })).toThrow(
      expect.objectContaining({
        code: 'POLICY_UNKNOWN',
        message: expect.stringContaining('guide, and there are opener'),
      }),
    )
    expect(() => requireAgents(environment(turns), task, { harness, own: {}, policies: [] })).toThrow(
      /needs a policy for its agent opener, and none is configured/,
    )
  })

  it('are refused where a harness cannot be asked again, unless one program is all of them', () => {
    const policies = names('opener', 'guide')
    const once = shellHarness({ command: 'agent' })
    expect(() => requireAgents(environment(turns), task, { harness: once, own: {}, policies })).toThrow(
      expect.objectContaining({ code: 'AGENTS_UNFIT' }),
    )
    const again = shellHarness({ command: 'agent', again: 'agent' })
    expect(() => requireAgents(environment(turns), task, { harness: again, own: {}, policies })).not.toThrow()
    expect(() => requireAgents(environment(turns), task, { harness: again, own: { guide: once }, policies })).toThrow(
      /cannot be asked again/,
    )
    const program: TaskAgents = { by: 'program', agents: turns.agents }
    const script = scriptHarness({ command: 'both' })
    expect(() => requireAgents(environment(program), task, { harness: script, own: {}, policies })).not.toThrow()
  })

  it('are refused beside steps, a user, and harnesses of another place', () => {
    const policies = names('opener', 'guide')
    const refused = (more: object, own: AgentHarnesses = {}) =>
      expect(() => requireAgents(environment(turns, more), task, { harness, own, policies })).toThrow(
        expect.objectContaining({ code: 'AGENTS_UNFIT' }),
      )
    refused({ steps: () => ({ tasks: [task] }) })
    refused({ user: () => ({ by: 'record', replies: [] }) })
    refused({}, { guide: shellHarness({ command: 'agent', again: 'agent' }) })
  })
})
