import { chmod, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../core/index.ts'
import { installPackages } from '../../sandbox/index.ts'
import type { HarnessBundle } from './contract.ts'

/** The Node that JavaScript harnesses run on in a box, whatever the task's image has. */
export const bundledNode = '24.21.0'

export interface NpmBundleOptions {
  readonly name: string
  /** Package and exact version. */
  readonly package: string
  readonly version: string
  /** What npm is asked for where that is not `package@version`: a package under another name. */
  readonly spec?: string
  /** Whether the program runs on Node, which then comes with the bundle. Default true. */
  readonly node?: boolean
  /** Further files at the root of the bundle. */
  readonly files?: Readonly<Record<string, string>>
  /** Programs of the package, relative to it, that its install script would have made executable. */
  readonly executables?: readonly string[]
}

/**
 * A bundle with one npm package and, where it needs that, Node, installed with the user's own npm and registry settings. No install script
 * runs, and optional dependencies stay out: what a box gets is what the registry's integrity hashes name.
 */
export function npmBundle(o: NpmBundleOptions): HarnessBundle {
  const files = o.files ?? {}
  return {
    name: o.name,
    version: `${o.version}-${sha256(JSON.stringify([o, bundledNode])).slice(0, 8)}`,
    build: async (directory, options) => {
      const node = o.node ?? true
      const what = `${o.package} ${o.version}${node ? ` and Node ${bundledNode}` : ''}`
      options.onProgress?.(`fetching ${what} from the npm registry`)
      const packages = node ? [`${nodePackage()}@${bundledNode}`] : []
      await installPackages(directory, [...packages, o.spec ?? `${o.package}@${o.version}`], options)
      if (node) await trim(join(directory, 'node_modules', nodePackage()))
      const root = join(directory, 'node_modules', o.package)
      for (const path of o.executables ?? []) await chmod(join(root, path), 0o755)
      for (const [path, text] of Object.entries(files)) await writeFile(join(directory, path), text)
    },
  }
}

/** Program and first arguments that start a package's script from a mounted bundle, with flags for Node before it. */
export function nodeCommand(o: {
  readonly bundlePath: string
  readonly package: string
  readonly script: string
  readonly flags?: readonly string[]
}): readonly string[] {
  const modules = `${o.bundlePath}/node_modules`
  return [`${modules}/${nodePackage()}/bin/node`, ...(o.flags ?? []), `${modules}/${o.package}/${o.script}`]
}

/** The directories of a mounted bundle that hold programs, as a `PATH` has them. */
export function bundledPrograms(bundlePath: string): string {
  const modules = `${bundlePath}/node_modules`
  return `${bundlePath}/bin:${modules}/.bin:${modules}/${nodePackage()}/bin`
}

// Boxes run on this machine, hence its architecture. `node` itself fetches these packages in an install script.
function nodePackage(): string {
  return `node-linux-${process.arch}`
}

/** Headers and manuals are two thirds of the package. */
async function trim(nodeDirectory: string): Promise<void> {
  for (const entry of await readdir(nodeDirectory)) {
    if (!['bin', 'LICENSE', 'package.json'].includes(entry)) await rm(join(nodeDirectory, entry), { recursive: true })
  }
}
