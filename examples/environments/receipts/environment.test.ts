import { join } from 'node:path'
import { describe } from 'vitest'
import { registerEnvironments } from '../../../src/envs/index.ts'
import { dockerProvider } from '../../../src/sandbox/index.ts'
import { environmentContract } from '../../../src/testing/environment/index.ts'
import { requireDocker } from '../../../src/testing/sandbox/index.ts'

const registry = await registerEnvironments([join(import.meta.dirname, 'environment.ts')])

describe.runIf(await requireDocker())('receipts keeps the environment contract', () =>
  environmentContract({
    environment: registry.get('receipts'),
    tasks: join(import.meta.dirname, 'tasks'),
    refused: [{ path: join(import.meta.dirname, 'environment.ts'), code: 'TASK_INVALID', names: /not JSON/ }],
    make: async () => dockerProvider(),
  }),
)
