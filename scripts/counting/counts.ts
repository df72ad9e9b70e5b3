/** Every count of the house, each with what it is a count of. */
import { posix } from 'node:path'
import { alike } from './shapes.ts'
import { readSource, type Source } from './source.ts'
import { surfaceFile } from './surface-file.ts'
import { codeLines, lineOf } from './syntax.ts'
import { isPlugin, isProduct, isSource, isTest, Tree } from './tree.ts'
import { hitsOf, patterns, proseOf } from './words.ts'

export interface Count {
  readonly key: string
  readonly says: string
  readonly value: number
  /** What makes it: how much of it is in which file, and one line for a reader. */
  readonly parts: readonly Part[]
  /** As `docs/decisions/house.md` has it; at or below it a count may rise and fall. Null: none is set. */
  readonly target: number | null
  /** Reported, and held by no baseline. */
  readonly isReportOnly: boolean
}

export interface Part {
  readonly path: string
  readonly amount: number
  readonly note: string
}

interface About {
  readonly target?: number
  readonly isReportOnly?: boolean
  /** Where the count is not the sum of its parts. */
  readonly value?: number
}

const part = (path: string, amount = 1, note = path): Part => ({ path, amount, note })

export function countsOf(root: string): readonly Count[] {
  const tree = new Tree(root)
  const sources = new Map(
    tree.paths
      .filter((path) => /\.tsx?$/.test(path) && !/^(examples\/tasks|docs)\//.test(path))
      .map((path) => [path, readSource(path, tree.text(path), { withFacts: !isTest(path) })]),
  )
  const house = [...sources.values()].filter(({ path }) => isSource(path))
  return [
    ...sizes(house),
    ...product(tree, sources),
    ...surface(tree),
    ...tangles(house),
    ...twice(house, [...sources.values()]),
    ...rooms(house),
    ...pages(tree),
    ...words(tree, sources),
    ...tests(tree, sources),
  ]
}

function count(key: string, says: string, parts: readonly Part[], about: About = {}): Count {
  const { target = null, isReportOnly = false, value = parts.reduce((sum, { amount }) => sum + amount, 0) } = about
  return { key, says, value, parts, target, isReportOnly }
}

function sizes(house: readonly Source[]): readonly Count[] {
  const small = house.filter(({ lines }) => lines < 25)
  const long = house.filter(({ lines }) => lines > 400)
  const lined = ({ path, lines }: Source): Part => part(path, 1, `${path} (${lines})`)
  return [
    count(
      'src.lines',
      'code lines of src: lines with anything but comments and blanks; *.test.ts apart',
      house.map(({ path, lines }) => part(path, lines)),
      { target: 88_000 },
    ),
    count(
      'src.tokens',
      'tokens of src: words, numbers and signs; a string is one, so formatting changes nothing',
      house.map(({ path, facts }) => part(path, facts?.tokens)),
      { target: 740_000 },
    ),
    count(
      'src.files',
      'files of src',
      house.map(({ path }) => part(path)),
      { target: 950 },
    ),
    count('src.small', 'files of src under 25 code lines', small.map(lined), { target: 60 }),
    count('src.large', 'files of src over 400 code lines', long.map(lined), { target: 25 }),
    count(
      'src.longest',
      'code lines of the longest file of src',
      house.map(({ path, lines }) => part(path, lines)),
      {
        target: 600,
        value: Math.max(0, ...house.map(({ lines }) => lines)),
      },
    ),
  ]
}

function product(tree: Tree, sources: ReadonlyMap<string, Source>): readonly Count[] {
  const paths = tree.paths.filter((path) => isProduct(path, (one) => tree.text(one)))
  return [
    count(
      'product.lines',
      'code lines of src, plugins, engine, web, scripts, sandboxes and clients/python; tests, data and made files apart',
      paths.map((path) => part(path, sources.get(path)?.lines ?? otherLines(path, tree.text(path)))),
      { target: 120_000 },
    ),
  ]
}

/** Code lines of a file that is not TypeScript. Doc strings of Python are comments. */
function otherLines(path: string, text: string): number {
  if (/\.(css|c|h|[mc]?js)$/.test(path)) {
    return codeLines(text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, ''))
  }
  if (path.endsWith('.html')) return codeLines(text.replaceAll(/<!--[\s\S]*?-->/g, ''))
  const plain = path.endsWith('.py') ? text.replaceAll(/^[ \t]*[rR]?"""[\s\S]*?"""[ \t]*$/gm, '') : text
  return codeLines(plain.replaceAll(/^\s*#.*$/gm, ''))
}

const kinds = {
  command: ['surface.commands', 'commands, those below another one too'],
  flag: ['surface.flags', 'options of commands, one name counted once'],
  key: ['surface.keys', 'keys of the configuration'],
  route: ['surface.routes', 'routes of all listeners'],
  error: ['surface.errors', 'error codes'],
  field: ['surface.fields', 'fields of export formats and of the manifest'],
  name: ['surface.names', 'names that the package exports'],
} as const

function surface(tree: Tree): readonly Count[] {
  if (!tree.paths.includes(surfaceFile)) return []
  const lines = tree.text(surfaceFile).split('\n')
  const counts = Object.entries(kinds).map(([kind, [key, says]]) => {
    const named = lines.filter((line) => line.startsWith(`${kind} `))
    const names = kind === 'flag' ? [...new Set(named.map((line) => line.split(' ').at(-1) ?? ''))] : named
    return count(
      key,
      `${says} (${surfaceFile})`,
      names.map((name) => part(surfaceFile, 1, name)),
    )
  })
  const user = counts.slice(0, 5).reduce((sum, { value }) => sum + value, 0)
  const says = 'commands, options, keys, routes and error codes together'
  return [...counts, count('surface.together', says, [], { value: user, isReportOnly: true })]
}

function tangles(house: readonly Source[]): readonly Count[] {
  const large = house.flatMap((source) =>
    (source.facts?.functions ?? []).map(({ line, name, lines, complexity }) =>
      part(source.path, 1, `${source.path}:${line} ${name} (${lines} lines, complexity ${complexity})`),
    ),
  )
  return [count('functions.large', 'functions of src over 60 code lines or with a cognitive complexity over 15', large)]
}

function twice(house: readonly Source[], all: readonly Source[]): readonly Count[] {
  const pairs = alike(house.flatMap(({ facts }) => facts?.shapes ?? [])).map(({ one, other, share }) =>
    part(
      one.path,
      1,
      `${one.path}:${one.line} ${one.name} ~ ${other.path}:${other.line} ${other.name} (${Math.round(share * 100)} %)`,
    ),
  )
  const declared = Map.groupBy(
    house.flatMap(({ path, facts }) => [...new Set(facts?.typeNames)].map((name) => ({ name, path }))),
    ({ name }) => name,
  )
  const names = [...declared].flatMap(([name, where]) =>
    where.length < 2 ? [] : [part(where[0]?.path ?? '', 1, `${name}: ${where.map(({ path }) => path).join(', ')}`)],
  )
  const doubled = all.flatMap((source) =>
    source.comments.flatMap(({ start, end, value }, at) => {
      const next = source.comments[at + 1]
      const isDoc = value.startsWith('*') && next?.value.startsWith('*') === true
      const isHead = source.text.slice(0, start).trim() === ''
      if (!isDoc || isHead || source.text.slice(end, next.start).trim() !== '') return []
      return [part(source.path, 1, `${source.path}:${lineOf(source.text, start)}`)]
    }),
  )
  return [
    count('shapes.alike', 'shapes of src with at least 5 keys that share 60 % of them with another one', pairs, {
      target: 10,
    }),
    count('types.twice', 'names of types that more than one file of src declares', names, { target: 10 }),
    count('comments.doubled', 'doc comments that another one follows', doubled, { target: 0 }),
  ]
}

function rooms(house: readonly Source[]): readonly Count[] {
  const top = Map.groupBy(
    house.filter(({ path }) => path.split('/').length === 3),
    ({ path }) => path.split('/')[1] ?? '',
  )
  const loose = [...top]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([room, files]) =>
      count(
        `loose.${room}`,
        `files at the top of src/${room}`,
        files.map(({ path }) => part(path)),
        { target: 15 },
      ),
    )
  const importers = new Map<string, Set<string>>()
  for (const source of house) {
    for (const name of source.imports) {
      if (!name.startsWith('.')) continue
      const path = posix.join(posix.dirname(source.path), name)
      importers.set(path, (importers.get(path) ?? new Set()).add(source.path))
    }
  }
  const once = house.filter(
    ({ path, lines }) =>
      lines < 40 && importers.get(path)?.size === 1 && !path.endsWith('/index.ts') && !isPlugin(path),
  )
  const inside = house.filter(({ path }) => /^src\/.+\/.+\/index\.ts$/.test(path) && !isPlugin(path))
  return [
    ...loose,
    count(
      'files.once',
      'files of src under 40 code lines that one file imports; index files and plugins apart',
      once.map(({ path, lines }) => part(path, 1, `${path} (${lines}) <- ${[...(importers.get(path) ?? [])].join()}`)),
    ),
    count(
      'files.index',
      'index files that are not at the door of a room or a plugin',
      inside.map(({ path }) => part(path)),
    ),
  ]
}

function pages(tree: Tree): readonly Count[] {
  const of = (path: string, size: (text: string) => number): readonly Part[] =>
    tree.paths.includes(path) ? [part(path, size(tree.text(path)))] : []
  return [
    count(
      'readme.lines',
      'lines of README.md',
      of('README.md', (text) => text.split('\n').length - 1),
      { target: 110 },
    ),
    count(
      'changelog.bytes',
      'bytes of CHANGELOG.md',
      of('CHANGELOG.md', (text) => Buffer.byteLength(text)),
      { target: 12_000 },
    ),
  ]
}

function words(tree: Tree, sources: ReadonlyMap<string, Source>): readonly Count[] {
  const prose = proseOf(tree, sources)
  return Object.entries(patterns).flatMap(([kind, named]) =>
    Object.entries(named).map(([name, pattern]) => {
      const hits = hitsOf(pattern, tree, prose)
      const parts = hits.map(({ path, line, text }) => part(path, 1, `${path}:${line} ${text}`))
      const key = `${kind}.${name.toLowerCase().replaceAll(' ', '-')}`
      return count(key, `"${name}" and the like in pages, messages, comments and test titles`, parts)
    }),
  )
}

function tests(tree: Tree, sources: ReadonlyMap<string, Source>): readonly Count[] {
  const files = tree.paths.filter((path) => isTest(path) && /\.(tsx?|py)$/.test(path))
  const lines = files.map((path) => part(path, sources.get(path)?.lines ?? otherLines(path, tree.text(path))))
  const calls = (pattern: RegExp): readonly Part[] =>
    files.flatMap((path) => {
      const found = sources.get(path)?.code.match(pattern)?.length ?? 0
      return found === 0 ? [] : [part(path, found)]
    })
  const about = { isReportOnly: true }
  return [
    count('tests.lines', 'code lines of tests and what they share', lines, about),
    count(
      'tests.titles',
      'tests as they are written: it(…), test(…); a table is one',
      calls(/\b(?:it|test)(?:\.\w+)*\(/g),
      about,
    ),
    count('tests.expects', 'expectations as they are written', calls(/\bexpect(?:\.\w+)?\(/g), about),
  ]
}
