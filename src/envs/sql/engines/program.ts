import { sandboxSource } from '../../../sandbox/index.ts'
import type { SqlEngineName } from './contract.ts'

/**
 * The program that runs SQL in a box: frame, engine, and what it is to do. Given to the box's python on its command line,
 * so that nothing in the box can change it.
 */
export function programOf(engine: SqlEngineName, action: string): string {
  return `${sandboxSource('sql/frame.py')}\n\n${sandboxSource(`sql/${engine}.py`)}\n\n${action}\n`
}

/** What an engine's box runs: `program` answers what it was given and ends, `resident` stays and answers as it is asked. */
export function programsOf(engine: SqlEngineName): { readonly program: string; readonly resident: string } {
  return { program: programOf(engine, 'main()'), resident: programOf(engine, 'stay()') }
}
