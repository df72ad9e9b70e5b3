import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/setup/order.ts'

/** Plugins of the examples import the package by its name; here that means the sources. */
export const ownName = [
  { find: /^paddock-rl$/, replacement: join(import.meta.dirname, 'src/kits/index.ts') },
  { find: /^paddock-rl\/(.+)$/, replacement: join(import.meta.dirname, 'src/kits/$1.ts') },
]

export default defineConfig({
  resolve: { alias: ownName },
  test: {
    include: ['src/**/*.test.ts', 'engine/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/{torture,real,world}/**'],
    setupFiles: ['test/setup/properties.ts'],
    // One more than the cores of the smallest machine: many files wait for Docker while others compute.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Threads and programs that tests start load the sources with node itself, which compiles each file once this way.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    // Bounds for what hangs, far beyond what a slow machine needs: no test is about them.
    testTimeout: 400_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
