import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { laneOf } from './scripts/lanes.ts'
import { bundledThreads } from './test/setup/bundled-threads.ts'
import { LongestFirst, sharedProject } from './test/setup/order.ts'

/** Plugins of the examples import the package by its name; here that means the sources. */
export const ownName = [
  { find: /^paddock-rl$/, replacement: join(import.meta.dirname, 'src/kits/index.ts') },
  { find: /^paddock-rl\/(.+)$/, replacement: join(import.meta.dirname, 'src/kits/$1.ts') },
]

const all = ['src/**/*.test.ts', 'engine/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts']
/** `./check` leaves to the lane `more` what that lists. Every other vitest takes any file that is named. */
const left = process.env['PADDOCK_CHECK'] === '1' ? laneOf('more', import.meta.dirname) : undefined
const never = ['**/node_modules/**', 'test/{torture,real,world}/**', ...(left?.files ?? []), ...(left?.long ?? [])]
/**
 * Files that a worker takes one after the other, so that it loads the rooms once. They leave their process as they found it, and what
 * they import registers no hook and starts nothing when it is loaded.
 */
const shared = [
  'src/{config,core,proxy,reward,server,trajectory}/**/*.test.ts',
  'test/{docs,engines,export,fidelity,house,pitfalls,properties,proxy,rl,splice,store}/**/*.test.ts',
  // One registers an OpenTelemetry SDK, which a process does once.
  'test/rollout/!(spans).test.ts',
  'engine/test/*.test.ts',
  'examples/environments/*/*.test.ts',
  'src/envs/*.test.ts',
  'src/envs/!(gui)/**/*.test.ts',
  'src/envs/gui/{cheats,contract,faults,schemas}.test.ts',
  'src/envs/gui/{actions,adapters,apps,browser,desktop,osworld}/**/*.test.ts',
  'src/envs/gui/importers/{cua-bench,miniwob,osworld/metrics,webarena}/*.test.ts',
  'src/rollout/**/!(agent-clock).test.ts',
  'src/sandbox/**/*.test.ts',
  'src/cli/{cli,public-network,scripted,starts,token-texts}.test.ts',
  'src/cli/{conform,node,present}/*.test.ts',
  'test/{bad-input,validate}.test.ts',
  'test/attacks/*.test.ts',
  'test/cli/{annotate,backup,box,conform,env,fetch,fork,generate,handed-over,import-store,inject,observe,outside-groups,resume,retrieve,rewrite,run,run-sql,search,serve,verdict,view,view-pages,virtual-tool,who-may}.test.ts',
  'test/fleet/*.test.ts',
]

export default defineConfig({
  plugins: [bundledThreads()],
  resolve: { alias: ownName },
  test: {
    projects: [
      { extends: true, test: { name: 'own process', include: all, exclude: [...never, ...shared] } },
      { extends: true, test: { name: sharedProject, include: shared, exclude: never, isolate: false } },
    ],
    environment: './test/setup/worker.ts',
    setupFiles: [
      'test/setup/fixtures.ts',
      'test/setup/environment.ts',
      'test/setup/properties.ts',
      'test/setup/cost.ts',
    ],
    // One more than the cores of the smallest machine: many files wait for Docker while others compute.
    maxWorkers: 3,
    // Most of what a test makes is dead at its end: more room for young objects, a tenth less CPU.
    execArgv: ['--max-semi-space-size=32'],
    sequence: { sequencer: LongestFirst },
    // Threads and programs that tests start load the sources with node itself, which compiles each file once this way.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node-compile') },
    // Bounds for what hangs, far beyond what a slow machine needs: no test is about them.
    testTimeout: 400_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
