import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'vite'

const root = join(import.meta.dirname, '../..')
const bundles = join(root, 'node_modules/.cache/threads')
/** Who starts a thread, and the thread, by the name that stands there. */
const threads = [
  { starter: 'src/trajectory/store/open-store.ts', thread: './side-worker.ts' },
  { starter: 'src/trajectory/recorder/recorder.ts', thread: './worker.ts' },
]

let built: Promise<unknown> | null = null

/**
 * Makes one file of each thread of a store and has tests start that: loading its hundred modules takes half of what a store costs that is
 * opened and closed again (docs/decisions/house.md).
 */
export function bundledThreads(): Plugin {
  return {
    name: 'bundled-threads',
    async buildStart() {
      const input = Object.fromEntries(
        threads.map(({ starter, thread }) => [thread.slice(2, -3), join(root, starter, '..', thread)]),
      )
      // Once for all projects; another vitest beside this one may be at work with the files that are there.
      built ??= build({
        configFile: false,
        root,
        logLevel: 'error',
        build: { ssr: true, outDir: bundles, emptyOutDir: false, rollupOptions: { input }, target: 'node24' },
      })
      await built
    },
    transform(code, id) {
      const found = threads.find(({ starter }) => id === join(root, starter))
      if (found === undefined) return null
      const { href } = pathToFileURL(join(bundles, found.thread.slice(2, -3) + '.js'))
      if (!code.includes(found.thread)) throw new Error(`${id} does not start ${found.thread}`)
      return { code: code.replace(found.thread, href), map: null }
    },
  }
}
