import type { TreeNode } from './tree.ts'

/** A node of the tree with the ref that a model calls it by. */
export interface ReferredNode extends TreeNode {
  readonly ref: string | null
  /** The nodes above it, outermost first. */
  readonly above: readonly ReferredNode[]
  readonly depth: number
}

/**
 * Names for the nodes of a page: `e1`, `e2`, … in the order in which they were first seen, the same for a node as long as
 * it lives. The browser's own ids differ from run to run; these do not.
 */
export class RefBook {
  readonly #byNode = new Map<number, string>()
  readonly #byRef = new Map<string, number>()

  /** All nodes in document order, each with its ref. */
  name(nodes: readonly TreeNode[]): readonly ReferredNode[] {
    return this.#walk(nodes, [])
  }

  /** The browser's id of a node; null for a ref that was never given. */
  nodeOf(ref: string): number | null {
    return this.#byRef.get(ref) ?? null
  }

  #walk(nodes: readonly TreeNode[], above: readonly ReferredNode[]): readonly ReferredNode[] {
    return nodes.flatMap((node) => {
      const ref = node.backendNodeId === null || node.role === 'text' ? null : this.#ref(node.backendNodeId)
      const here: ReferredNode = { ...node, ref, above, depth: above.length }
      return [here, ...this.#walk(node.children, [...above, here])]
    })
  }

  #ref(backendNodeId: number): string {
    const found = this.#byNode.get(backendNodeId)
    if (found !== undefined) return found
    const ref = `e${this.#byNode.size + 1}`
    this.#byNode.set(backendNodeId, ref)
    this.#byRef.set(ref, backendNodeId)
    return ref
  }
}

/** One line of a snapshot: `- button "Save" [ref=e12] [disabled]: value`. */
export function lineOf(node: ReferredNode): string {
  const indent = '  '.repeat(node.depth)
  if (node.role === 'text') return `${indent}- text: ${node.name}`
  const name = node.name === '' ? '' : ` ${JSON.stringify(node.name)}`
  const ref = node.ref === null ? '' : ` [ref=${node.ref}]`
  const states = node.states.map((state) => ` [${state}]`).join('')
  return `${indent}- ${node.role}${name}${ref}${states}${node.value === '' ? '' : `: ${node.value}`}`
}
