/**
 * A resources server of NeMo Gym behind Paddock's contract: `example_multi_step`, which comes in the package `nemo-gym`, asks for values of synonyms.
 * docs/guides/environments-of-nemo-gym.md says how to run it.
 */
import type { EnvironmentKit } from '../../../src/envs/index.ts'

export default ({ nemoGymEnvironment }: EnvironmentKit) =>
  nemoGymEnvironment({
    name: 'synonyms',
    version: '0.7.0',
    app: 'resources_servers.example_multi_step.app',
  })
