import { join } from 'node:path'
import { environmentRegistry } from '../../../src/envs/index.ts'
import { dockerProvider } from '../../../src/sandbox/index.ts'
import { environmentContract } from '../../../src/testing/environment/index.ts'

const registry = await environmentRegistry({ plugins: [join(import.meta.dirname, 'environment.ts')], builtIn: [] })

environmentContract({
  environment: registry.get('receipts'),
  tasks: join(import.meta.dirname, 'tasks'),
  refused: [{ path: join(import.meta.dirname, 'environment.ts'), code: 'TASK_INVALID', names: /not JSON/ }],
  make: async () => dockerProvider(),
})
