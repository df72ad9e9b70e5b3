import { join } from 'node:path'
import { describe } from 'vitest'
import { dockerProvider } from '../../sandbox/index.ts'
import { environmentContract } from '../../testing/environment/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { terminal } from './index.ts'

const example = join(import.meta.dirname, '../../../examples/tasks/terminal/log-forensics')

describe.runIf(await requireDocker())('terminal keeps the environment contract', () => {
  environmentContract({ environment: terminal, tasks: example, make: async () => dockerProvider() })
})
