/** The report of what the package exports: each name of each door with its signature, read from the declarations that tsc makes. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** Report of each door by its name: `index`, `environment`, … Throws where tsc fails or an exported name has no declaration. */
export function apiReports(): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>
  }
  const doors = Object.values(exports).flatMap((target) =>
    typeof target === 'object' && target !== null && 'types' in target ? [basename(String(target.types), '.d.ts')] : [],
  )
  const reports = (declarations: string): ReadonlyMap<string, string> =>
    new Map(doors.map((door) => [door, reportOf(join(declarations, 'src/kits', `${door}.d.ts`))]))
  const directory = mkdtempSync(join(tmpdir(), 'paddock-api-'))
  try {
    const project = join(directory, 'tsconfig.json')
    const compilerOptions = {
      noEmit: false,
      emitDeclarationOnly: true,
      declaration: true,
      rootDir: root,
      outDir: join(directory, 'out'),
      typeRoots: [join(root, 'node_modules/@types')],
    }
    const files = doors.map((door) => join(root, `src/kits/${door}.ts`))
    writeFileSync(
      project,
      JSON.stringify({
        extends: join(root, 'tsconfig.json'),
        compilerOptions,
        files,
        include: [join(root, 'src/**/*.d.ts')],
        exclude: [],
      }),
    )
    const compiled = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' })
    if (compiled.status !== 0) throw new Error(`tsc: ${compiled.stdout}${compiled.stderr}`)
    return reports(join(directory, 'out'))
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function reportOf(file: string): string {
  const text = textOf(file)
  const own = statements(text).flatMap((statement) => {
    const name = declaredBy(statement)
    return name === null ? [] : [{ name, declared: statement }]
  })
  const listed = exportsOf(text).map(({ name, inner, from }) => {
    const found = declarationOf(file, inner, from) ?? missing(file, name)
    return { name, declared: found.replace(new RegExp(`^(export [^=:(]*?)\\b${inner}\\b`), `$1${name}`) }
  })
  const named = [...own, ...listed].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return `${named.map(({ declared }) => declared).join('\n\n')}\n`
}

function missing(file: string, name: string): never {
  throw new Error(`${file} exports ${name}, which no declaration has`)
}

interface Exported {
  readonly name: string
  /** Its name where it comes from. */
  readonly inner: string
  readonly from: string
}

/** The lists `export { … } from '…'` of a file. */
function exportsOf(text: string): readonly Exported[] {
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)].flatMap(([, list = '', from = '']) =>
    list
      .split(',')
      .map((one) => one.trim().replace(/^type /, ''))
      .filter((one) => one !== '')
      .map((one) => {
        const [inner = '', name = inner] = one.split(' as ')
        return { name, inner, from }
      }),
  )
}

/** The statements that declare `name` in the module `from` of `file`, or in what that exports on; null: not there. */
function declarationOf(file: string, name: string, from: string): string | null {
  if (!from.startsWith('.')) return `export { ${name} } from '${from}'`
  const module = resolve(dirname(file), from.replace(/\.ts$/, '.d.ts'))
  if (!existsSync(module)) return null
  const text = textOf(module)
  const own = statements(text).filter((statement) => declaredBy(statement) === name)
  if (own.length > 0) return own.join('\n')
  const [, whole] = new RegExp(`^export \\* as ${name} from '([^']+)'`, 'm').exec(text) ?? []
  if (whole !== undefined) {
    const inside = reportOf(resolve(dirname(module), whole.replace(/\.ts$/, '.d.ts')))
    return `export namespace ${name} {\n${inside.trimEnd().replaceAll(/^(?=.)/gm, '    ')}\n}`
  }
  const listed = exportsOf(text).find((one) => one.name === name)
  if (listed !== undefined) return declarationOf(module, listed.inner, listed.from)
  for (const [, next = ''] of text.matchAll(/^export (?:type )?\* from '([^']+)'/gm)) {
    const found = declarationOf(module, name, next)
    if (found !== null) return found
  }
  return null
}

/** The name that a statement exports; null: none. */
function declaredBy(statement: string): string | null {
  const words = /^export (?:declare )?(?:abstract )?(?:async )?(?:function|const|class|interface|type) ([A-Za-z0-9_$]+)/
  return words.exec(statement)?.[1] ?? null
}

/** Top-level statements: each begins at the first column, and only its closing bracket does too. */
function statements(text: string): readonly string[] {
  return text.split(/\n(?=[a-z])/).map((statement) => statement.trimEnd())
}

/** Without comments: the report is of names and signatures. */
function textOf(file: string): string {
  return readFileSync(file, 'utf8')
    .replace(/^\s*\/\*\*[\s\S]*?\*\/\n/gm, '')
    .replace(/^\s*\/\/.*\n/gm, '')
}
