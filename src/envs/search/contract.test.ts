import { join } from 'node:path'
import { describe } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { searchEnvironment } from './index.ts'

const example = join(import.meta.dirname, '../../../examples/tasks/search')

describe.runIf(await requireDocker())('search keeps the environment contract', () => {
  const directory = tempDir()
  environmentContract({
    environment: searchEnvironment({ directory }),
    tasks: example,
    make: async () => dockerProvider(),
  })
})
