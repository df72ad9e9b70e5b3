import type { Task } from '../../core/index.ts'
import type { Environment, Tool } from '../../envs/index.ts'

/** The tools that a harness in the box is offered over MCP: those that it does not have the like of by itself. */
export function mcpTools(environment: Environment, task: Task): readonly Tool[] {
  return environment.tools(task).filter((tool) => tool.nativeToHarness !== true)
}
