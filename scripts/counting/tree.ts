/** The files of a checkout, and which of them a count looks at. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export class Tree {
  readonly root: string
  /** Relative to the root, sorted. Files that git ignores are not among them. */
  readonly paths: readonly string[]
  readonly #texts = new Map<string, string>()

  constructor(root: string) {
    this.root = root
    this.paths = (listedByGit(root) ?? listed(root, '')).toSorted()
  }

  text(path: string): string {
    const known = this.#texts.get(path) ?? readFileSync(join(this.root, path), 'utf8')
    this.#texts.set(path, known)
    return known
  }
}

function listedByGit(root: string): readonly string[] | null {
  if (!existsSync(join(root, '.git'))) return null
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0) return null
  return [...new Set(stdout.split('\0'))].filter((path) => path !== '' && existsSync(join(root, path)))
}

function listed(root: string, below: string): readonly string[] {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : listed(root, path)
    return entry.isFile() ? [path] : []
  })
}

export const isTest = (path: string): boolean =>
  /\.test\.tsx?$|(^|\/)tests?\/|(^|\/)(test_[^/]*|conftest)\.py$/.test(path)

/** TypeScript of `src`, tests apart: what most counts are about. */
export const isSource = (path: string): boolean => path.startsWith('src/') && path.endsWith('.ts') && !isTest(path)

const written = /\.(ts|tsx|mts|mjs|cjs|js|py|c|h|sh|css|html)$|(^|\/)Dockerfile$|^(check|paddock|quickstart)$/

/** The product and its helpers; tests, data and generated files apart. */
export const isProduct = (path: string, text: (path: string) => string): boolean =>
  /^(src|plugins|engine|web|scripts|sandboxes|clients\/python)\//.test(path) &&
  !isTest(path) &&
  (written.test(path) || (!/\.[^/]*$/.test(path) && text(path).startsWith('#!')))

/** Folders of which each file, or each folder, is a plugin of its kind: one importer, the registry, is all it needs. */
export const isPlugin = (path: string): boolean =>
  path.startsWith('plugins/') ||
  /^src\/(cli\/commands|trajectory\/export|trajectory\/select\/built-in|rollout\/harnesses|proxy\/dialects|proxy\/engines|reward\/rule|envs|envs\/gui\/(apps|adapters|importers))\/[^/]+(\/index)?\.ts$/.test(
    path,
  )
