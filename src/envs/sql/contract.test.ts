import { join } from 'node:path'
import { describe } from 'vitest'
import { dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { sql } from './index.ts'

describe.runIf(await requireDocker())('sql keeps the environment contract', () => {
  environmentContract({
    environment: sql,
    tasks: join(import.meta.dirname, '../../../examples/tasks/sql/metro.json'),
    make: async () => dockerProvider(),
  })
})
