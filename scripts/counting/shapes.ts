/** Duplicates: shapes by their keys, types by their names. */
import { isNode, lineOf, type Node, type Written } from './syntax.ts'

export interface Shape {
  readonly path: string
  readonly line: number
  readonly name: string
  readonly keys: ReadonlySet<string>
}

/**
 * An interface, an object type with a name or a zod object, with at least five keys; `call_id` and `callId` are one key.
 * `declared` is the name of the constant that a zod object stands for.
 */
export function shapeOf({ path, text, code }: Written, node: Node, declared: string, least = 5): Shape | null {
  const described = (name: string, members: unknown): Shape | null => {
    if (!Array.isArray(members)) return null
    const keys = new Set(members.filter(isNode).flatMap(keyOf))
    return keys.size < least ? null : { path, line: lineOf(text, node.start), name, keys }
  }
  if (node.type === 'TSInterfaceDeclaration') return described(idOf(node), (node['body'] as Node)['body'])
  if (node.type === 'TSTypeAliasDeclaration') {
    const type = node['typeAnnotation'] as Node
    return type.type === 'TSTypeLiteral' ? described(idOf(node), type['members']) : null
  }
  if (node.type !== 'CallExpression') return null
  const callee = node['callee'] as Node
  const [first] = node['arguments'] as readonly Node[]
  if (first?.type !== 'ObjectExpression') return null
  const isObject = /\.(object|strictObject|looseObject|extend)$/.test(code.slice(callee.start, callee.end))
  return isObject ? described(declared, first['properties']) : null
}

const idOf = (node: Node): string => {
  const { name } = (node['id'] ?? {}) as { name?: unknown }
  return typeof name === 'string' ? name : ''
}

function keyOf(member: Node): readonly string[] {
  const key = member['key'] as { name?: unknown; value?: unknown } | undefined
  const name = key?.name ?? key?.value
  return typeof name === 'string' ? [name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())] : []
}

/** For each shape that has one: the shape it is most alike. `share` is common keys by all keys of both. */
export function alike(shapes: readonly Shape[], least = 0.6): readonly { one: Shape; other: Shape; share: number }[] {
  const holders = new Map<string, number[]>()
  shapes.forEach(({ keys }, at) => {
    for (const key of keys) holders.set(key, [...(holders.get(key) ?? []), at])
  })
  return shapes.flatMap((one, at) => {
    const common = new Map<number, number>()
    for (const key of one.keys)
      for (const other of holders.get(key) ?? []) common.set(other, (common.get(other) ?? 0) + 1)
    const [best] = [...common]
      .filter(([other]) => other !== at)
      .flatMap(([index, count]) => {
        const other = shapes[index]
        return other === undefined ? [] : [{ one, other, share: count / (one.keys.size + other.keys.size - count) }]
      })
      .toSorted((a, b) => b.share - a.share)
    return best === undefined || best.share < least ? [] : [best]
  })
}

/** Names of types that a file declares at its top: interfaces, aliases, classes. */
export function typeNames(program: Node): readonly string[] {
  const body = program['body'] as readonly Node[]
  return body.flatMap((statement) => {
    const declared = (statement['declaration'] ?? statement) as Node
    return /^(TSInterfaceDeclaration|TSTypeAliasDeclaration|ClassDeclaration)$/.test(declared.type)
      ? [idOf(declared)]
      : []
  })
}
