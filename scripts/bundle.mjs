// Bundles into dist/: one declaration file for each import of the package, and the Docker client.
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

// A busy machine is no fault of the build.
const checks = { pluginTimings: false }

/**
 * Declarations of `tsc` below `from`, as what the doors in `src/kits` export and no more: `<to>/<door>.d.ts` and what several share.
 * Types of packages that no exported name needs are out of reach (better-sqlite3, pg, dockerode bring none of their own).
 */
export async function bundleTypes(from, to) {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const doors = Object.values(exports).flatMap(({ types }) => (types ? [basename(types, '.d.ts')] : []))
  const input = Object.fromEntries(doors.map((door) => [door, join(from, `src/kits/${door}.d.ts`)]))
  const plugins = [dts({ dtsInput: true, generator: 'oxc', tsconfig: false })]
  const bundle = await rolldown({ input, plugins, external: (id) => !/^[./]/.test(id), checks })
  const names = { entryFileNames: '[name].d.ts', chunkFileNames: 'shared/[name].d.ts' }
  await bundle.write({ dir: to, format: 'es', ...names })
  await bundle.close()
  // For values, of which declarations have none.
  rmSync(join(to, 'shared/rolldown-runtime.d.ts'), { force: true })
}

/** Packages that the Docker client loads for daemons behind ssh and for sessions of BuildKit, neither of which Paddock asks for. */
export const leftOut = ['ssh2', '@grpc/grpc-js', '@grpc/proto-loader', 'protobufjs']

/** The Docker client as one file. Two of the packages that {@link leftOut} names would be compiled when somebody installs Paddock. */
export async function bundleDocker(file) {
  const absent = {
    name: 'left-out',
    resolveId: (id) => (leftOut.includes(id) ? { id: `\0${id}` } : null),
    load: (id) => (leftOut.includes(id.slice(1)) ? 'module.exports = {}' : null),
  }
  const input = createRequire(import.meta.url).resolve('dockerode')
  const bundle = await rolldown({ input, platform: 'node', plugins: [absent], checks })
  await bundle.write({ file, format: 'cjs', minify: false })
  await bundle.close()
}
