/** The syntax tree of TypeScript, as oxc-parser gives it. */
import { visitorKeys } from 'oxc-parser'

/** Any node; what a kind of node has beyond these is read by name. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export interface Written {
  readonly path: string
  readonly text: string
  /** The text with blanks in place of comments. */
  readonly code: string
}

export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** Each node below (and with) this one, before what it holds. */
export function walk(node: Node, enter: (node: Node, parent: Node | null) => void, parent: Node | null = null): void {
  enter(node, parent)
  for (const key of visitorKeys[node.type] ?? []) {
    const held = node[key]
    if (Array.isArray(held)) {
      for (const child of held) if (isNode(child)) walk(child, enter, node)
    } else if (isNode(held)) walk(held, enter, node)
  }
}

export function childrenOf(node: Node): readonly Node[] {
  return (visitorKeys[node.type] ?? []).flatMap((key) => {
    const held = node[key]
    return (Array.isArray(held) ? held : [held]).filter(isNode)
  })
}

/** Lines with anything but blanks. */
export const codeLines = (code: string): number => code.match(/^.*\S.*$/gm)?.length ?? 0

export function lineOf(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}
