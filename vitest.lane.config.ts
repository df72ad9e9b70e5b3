import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** What `scripts/lane.ts` runs: the files of one lane of `test/`, each in a vitest of its own. */
export default defineConfig({
  test: {
    include: ['test/{torture,real,world}/**/*.test.ts'],
    environment: './test/setup/worker.ts',
    setupFiles: ['test/setup/fixtures.ts'],
    fileParallelism: false,
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    // Bounds for what hangs, far beyond what a slow machine needs: no test is about them.
    testTimeout: 900_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
