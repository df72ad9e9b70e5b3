/** Long functions and tangled ones. */
import { childrenOf, codeLines, lineOf, type Node, type Written } from './syntax.ts'

export interface LargeFunction {
  readonly line: number
  readonly name: string
  readonly lines: number
  readonly complexity: number
}

const kinds = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

export const isFunction = ({ type, body }: Node): boolean => kinds.has(type) && body !== null

/** A function of more code lines, or of more cognitive complexity, than that; null: it is neither. */
export function largeFunction(
  { text, code }: Written,
  node: Node,
  parent: Node | null,
  most = { lines: 60, complexity: 15 },
): LargeFunction | null {
  const lines = codeLines(code.slice(node.start, node.end))
  const complexity = complexityOf(node)
  if (lines <= most.lines && complexity <= most.complexity) return null
  return { line: lineOf(text, node.start), name: nameOf(node, parent), lines, complexity }
}

function nameOf(node: Node, parent: Node | null): string {
  const named = [node['id'], parent?.['key'], parent?.['id']].find(
    (one): one is Node & { name: string } => typeof (one as { name?: unknown } | null)?.name === 'string',
  )
  return named?.name ?? '(unnamed)'
}

/**
 * Cognitive complexity (G. A. Campbell, SonarSource 2018): 1 for each break in the flow, and 1 more for each one around it;
 * `else` and each run of one logical operator count 1. What a function inside does is that function's own.
 */
function complexityOf(whole: Node): number {
  let sum = 0
  const visit = (node: Node, depth: number, parent: Node | null): void => {
    if (isFunction(node)) return
    switch (node.type) {
      case 'IfStatement': {
        const isElseIf = parent?.type === 'IfStatement' && parent['alternate'] === node
        const inside = isElseIf ? depth : depth + 1
        sum += isElseIf ? 1 : 1 + depth
        visit(node['test'] as Node, depth, node)
        visit(node['consequent'] as Node, inside, node)
        const alternate = node['alternate'] as Node | null
        if (alternate === null) return
        if (alternate.type !== 'IfStatement') sum += 1
        return visit(alternate, inside, node)
      }
      case 'ConditionalExpression':
      case 'SwitchStatement':
      case 'ForStatement':
      case 'ForInStatement':
      case 'ForOfStatement':
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'CatchClause':
        sum += 1 + depth
        for (const child of childrenOf(node)) visit(child, depth + 1, node)
        return
      case 'LogicalExpression':
        if (parent?.type !== 'LogicalExpression' || parent['operator'] !== node['operator']) sum += 1
        break
      case 'BreakStatement':
      case 'ContinueStatement':
        if (node['label'] !== null) sum += 1
    }
    for (const child of childrenOf(node)) visit(child, depth, node)
  }
  for (const child of childrenOf(whole)) visit(child, 0, whole)
  return sum
}
