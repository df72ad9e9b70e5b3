/**
 * An environment from the Python package index behind Paddock's contract: `openenv-dipg-safety` asks about clinical texts and
 * rewards answers that hold to them. docs/guides/environments-of-others.md says how to run it.
 */
import { join } from 'node:path'
import type { EnvironmentKit } from '../../../src/envs/index.ts'

export default ({ openEnvEnvironment }: EnvironmentKit) =>
  openEnvEnvironment({
    name: 'dipg',
    version: '0.1.67',
    server: {
      // It listens where the variable PORT says; others take the port as an argument: `{port}`.
      command: ['python', '-m', 'med_safety_gym.app'],
      env: {
        DIPG_DATASET_PATH: join(import.meta.dirname, 'questions.jsonl'),
        POSTGRES_URL: 'sqlite://',
        HF_HUB_OFFLINE: '1',
      },
    },
  })
