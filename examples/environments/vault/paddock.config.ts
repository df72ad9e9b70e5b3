import { join } from 'node:path'
import type { ConfigInput } from '../../../src/config/index.ts'

/** Where the engine finds the adapters. The scripted engine has no weights, and takes any folder. */
const adapter = (name: string) => ({ name, path: join(import.meta.dirname, 'adapters', name) })

/** Two policies on one engine, each an adapter of its own; and a program of its own for each of the two agents. */
export default {
  environments: ['./environment.ts'],
  harnesses: {
    opener: { binary: './agents/opener.py', run: 'opener.py', again: 'opener.py' },
    guide: { binary: './agents/guide.py', run: 'guide.py', again: 'guide.py' },
  },
  policies: {
    opener: { adapter: adapter('opener-0'), harness: 'opener' },
    guide: { adapter: adapter('guide-0'), harness: 'guide' },
  },
} satisfies ConfigInput
