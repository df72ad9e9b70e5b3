import { describe } from 'vitest'
import { requireDocker, sandboxContract } from '../testing/sandbox/index.ts'
import { dockerProvider } from './index.ts'

describe.runIf(await requireDocker())('Docker keeps the sandbox contract', () => {
  sandboxContract({ make: async () => dockerProvider() })
})
