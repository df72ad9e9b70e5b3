import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** Kills, faults and floods: fixed seeds, bounded time, run by `npm run torture`. */
export default defineConfig({
  test: {
    include: ['test/torture/**/*.test.ts'],
    fileParallelism: false,
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    testTimeout: 900_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
