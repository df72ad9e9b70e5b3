import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { searchEnvironment } from './index.ts'

const example = join(import.meta.dirname, '../../../examples/tasks/search')

describe.runIf(await requireDocker())('search keeps the environment contract', () => {
  const directory = mkdtempSync(join(tmpdir(), 'paddock-search-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  environmentContract({
    environment: searchEnvironment({ directory }),
    tasks: example,
    make: async () => dockerProvider(),
  })
})
