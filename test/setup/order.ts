/** The order of the test files: the longest first, so that none of them begins when the other workers have nothing left. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Measured; the rest follows as vitest orders it. What is long and stands elsewhere costs time and nothing else. */
const longest = [
  // Files of the lane `more`.
  'test/validate.test.ts',
  'test/docs/guide-commands.test.ts',
  'src/envs/gui/importers/osworld/osworld.test.ts',
  'test/fidelity/quickstart.test.ts',
  'test/store/damage.test.ts',
  // Files of `./check`.
  'src/envs/terminal/terminal.test.ts',
  'src/sandbox/docker.test.ts',
  'test/export/groups.test.ts',
  'test/cli/fork.test.ts',
  'test/rollout/groups.test.ts',
  'test/attacks/attacks.test.ts',
  'src/envs/openenv/openenv.test.ts',
  'src/trajectory/export/export.test.ts',
  'src/trajectory/store/drivers.test.ts',
  'test/rollout/gui.test.ts',
  'test/proxy/restart.test.ts',
  'test/cli/run-sql.test.ts',
  'test/cli/run.test.ts',
  'test/cli/env.test.ts',
]

/** The project of the files that share processes: they come last, one behind the other, or their processes would end in between. */
export const sharedProject = 'shared process'

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const at = longest.findIndex((path) => moduleId.endsWith(`/${path}`))
      const among = at === -1 ? longest.length : at
      return project.name === sharedProject ? longest.length + 1 + among : among
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
