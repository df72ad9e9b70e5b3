/**
 * An environment of `verifiers` from the Python package index behind Paddock's contract: `sophistry-bench-sprint` asks for an argument and rewards
 * claims with quotations. docs/guides/environments-of-others.md says how to run it.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

export default ({ verifiersEnvironment }: EnvironmentKit) =>
  verifiersEnvironment({
    name: 'advocacy',
    version: '0.1.6',
    load: 'sophistry-bench-sprint',
    args: { n_items: 50 },
  })
