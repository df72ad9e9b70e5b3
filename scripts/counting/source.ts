/** A TypeScript file as the counts see it. */
import { type Comment, parseSync } from 'oxc-parser'
import { isFunction, type LargeFunction, largeFunction } from './functions.ts'
import { type Shape, shapeOf, typeNames } from './shapes.ts'
import { codeLines, type Node, walk, type Written } from './syntax.ts'

export interface Source extends Written {
  readonly comments: readonly Comment[]
  readonly lines: number
  /** Modules that it imports or exports from, as written. */
  readonly imports: readonly string[]
  /** Names that it exports. */
  readonly exports: readonly string[]
  /** Null: its tree was not asked for. */
  readonly facts: Facts | null
}

/** What the tree of a file says. The tree itself is let go: all of them together are some hundred megabytes. */
export interface Facts {
  readonly tokens: number
  readonly functions: readonly LargeFunction[]
  readonly shapes: readonly Shape[]
  readonly typeNames: readonly string[]
  /** Strings, and pieces of templates and of JSX. */
  readonly texts: readonly { readonly at: number; readonly text: string }[]
}

export function readSource(path: string, text: string, o: { readonly withFacts: boolean }): Source {
  const parsed = parseSync(path, text, { sourceType: 'module' })
  const code = withoutComments(text, parsed.comments)
  const named = parsed.module.staticExports.flatMap(({ entries }) => entries)
  return {
    path,
    text,
    code,
    comments: parsed.comments,
    lines: codeLines(code),
    imports: [
      ...parsed.module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
      ...named.flatMap(({ moduleRequest }) => (moduleRequest === null ? [] : [moduleRequest.value])),
      ...parsed.module.dynamicImports.flatMap(({ moduleRequest }) => {
        const [, name] = /^['"](.*)['"]$/.exec(text.slice(moduleRequest.start, moduleRequest.end)) ?? []
        return name === undefined ? [] : [name]
      }),
    ],
    exports: named.flatMap(({ exportName }) => (exportName.name === null ? [] : [exportName.name])),
    facts: o.withFacts ? factsOf({ path, text, code }, parsed.program as unknown as Node) : null,
  }
}

function withoutComments(text: string, comments: readonly Comment[]): string {
  let code = ''
  let at = 0
  for (const { start, end } of comments) {
    code += text.slice(at, start) + text.slice(start, end).replaceAll(/[^\n]/g, ' ')
    at = end
  }
  return code + text.slice(at)
}

function factsOf(source: Written, program: Node): Facts {
  const literals: Node[] = []
  const functions: LargeFunction[] = []
  const shapes: Shape[] = []
  let declared = ''
  walk(program, (node, parent) => {
    const { type, value } = node
    const isText = type === 'Literal' && (typeof value === 'string' || 'regex' in node)
    if (isText || type === 'TemplateElement' || type === 'JSXText') literals.push(node)
    else if (type === 'VariableDeclarator') declared = (node['id'] as { name?: string }).name ?? ''
    else if (isFunction(node)) {
      const large = largeFunction(source, node, parent)
      if (large !== null) functions.push(large)
    }
    const shape = shapeOf(source, node, declared)
    if (shape !== null) shapes.push(shape)
  })
  literals.sort((a, b) => a.start - b.start)
  return {
    tokens: tokensOf(source.code, literals),
    functions,
    shapes,
    typeNames: typeNames(program),
    texts: literals
      .filter((node) => !('regex' in node))
      .map(({ start, end }) => ({ at: start, text: source.text.slice(start, end) })),
  }
}

const token =
  /[\p{L}_$#@][\p{L}\p{N}_$]*|\d[\w.]*|>>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.|\+\+|--|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|<<|>>|\*\*|\S/gu

/** Words, numbers and signs; a string, a regular expression and each piece of a template is one. */
function tokensOf(code: string, literals: readonly Node[]): number {
  let rest = ''
  let at = 0
  for (const { start, end } of literals) {
    rest += `${code.slice(at, start)} `
    at = end
  }
  return literals.length + ((rest + code.slice(at)).match(token)?.length ?? 0)
}
