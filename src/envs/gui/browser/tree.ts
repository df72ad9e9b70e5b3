import type { GuiPage } from './page.ts'
import { type AxNode, axTree, nothing } from './shapes.ts'

/** A node of a page as assistive programs see it. */
export interface TreeNode {
  readonly role: string
  readonly name: string
  readonly value: string
  /** Short words such as `checked`, `disabled`, `focused`. */
  readonly states: readonly string[]
  /** Null for what cannot be pointed at. */
  readonly backendNodeId: number | null
  readonly children: readonly TreeNode[]
}

/** Roles that only group or that repeat the text of the node above (Chromium's ax_enums.mojom names). */
const transparent = new Set([
  'none',
  'generic',
  'InlineTextBox',
  'LineBreak',
  'Section',
  'RootWebArea',
  'LabelText',
  'paragraph',
  'Pre',
  'LayoutTable',
  'LayoutTableRow',
  'LayoutTableCell',
  'MenuListPopup',
])

/** The accessibility tree of a tab's document, without what only groups. */
export async function readTree(page: GuiPage): Promise<readonly TreeNode[]> {
  await page.send('Accessibility.enable', {}, nothing)
  const { nodes } = await page.send('Accessibility.getFullAXTree', {}, axTree)
  const byId = new Map(nodes.map((node) => [node.nodeId, node]))
  const [root] = nodes
  return root === undefined ? [] : below(root, byId, '')
}

function below(node: AxNode, byId: ReadonlyMap<string, AxNode>, nameAbove: string): readonly TreeNode[] {
  const role = text(node.role?.value)
  const name = text(node.name?.value)
  const skipped = node.ignored || transparent.has(role)
  const inner = (above: string): readonly TreeNode[] =>
    (node.childIds ?? []).flatMap((id) => {
      const child = byId.get(id)
      return child === undefined ? [] : below(child, byId, above)
    })
  if (skipped) return inner(nameAbove)
  if (role === 'StaticText') {
    // A button's own label is its name already.
    if (name === '' || nameAbove.includes(name)) return []
    return [{ role: 'text', name, value: '', states: [], backendNodeId: node.backendDOMNodeId ?? null, children: [] }]
  }
  const value = valueOf(node, role)
  // What a field holds is its value already.
  const children = inner(`${name} ${value}`)
  return [
    {
      role: role === 'MenuListOption' ? 'option' : role,
      name,
      value,
      states: statesOf(node),
      backendNodeId: node.backendDOMNodeId ?? null,
      children,
    },
  ]
}

function valueOf(node: AxNode, role: string): string {
  const value = text(node.value?.value)
  return role === 'heading' ? '' : value
}

const told = new Set([
  'checked',
  'disabled',
  'expanded',
  'focused',
  'invalid',
  'level',
  'pressed',
  'readonly',
  'required',
  'selected',
  'modal',
  'valuemin',
  'valuemax',
])

function statesOf({ properties = [] }: AxNode): readonly string[] {
  return properties.flatMap(({ name, value: { value } }) => {
    if (!told.has(name)) return []
    if (value === true || value === 'true') return [name]
    if (name === 'expanded' && value === false) return ['collapsed']
    if (value === false || value === 'false' || value === '' || value === undefined) return []
    return [`${name}=${text(value)}`]
  })
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value).replaceAll(/\s+/g, ' ').trim() : ''
}
