import type { GuiPage } from './page.ts'
import { CdpRefusal } from './cdp-pipe.ts'
import { type AxNode, axTree, domSnapshot, type FrameBranch, frameOwner, frameTree } from './shapes.ts'

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

/**
 * Elements of a document from which on its tree is not read: 40,000 are 47 MB of answer, and take a busy machine longer than
 * a browser may be silent.
 */
const mostElements = 20_000
/** Texts of something that can be clicked, from which on it is taken for a whole page and its texts for plain. */
const mostTexts = 30

/** The page has more elements than its tree can be read of. */
export class PageTooLarge extends Error {}

/** The accessibility tree of one document. */
interface Document {
  readonly root: AxNode
  readonly byId: ReadonlyMap<string, AxNode>
}

interface Clickable {
  /** Nodes that answer to clicks, whatever their role. */
  readonly clickable: ReadonlySet<number>
  /** The nearest of them around a text, by the text. */
  readonly around: ReadonlyMap<number, number>
}

interface Reading extends Clickable {
  /** Documents of frames, by the node that the frame is in. */
  readonly frames: ReadonlyMap<number, Document>
  /** Nodes that stand in the tree, ignored ones too: what has the role of nothing (`presentation`) does not. */
  readonly there: ReadonlySet<number | undefined>
}

/** Roles of elements that have a document of their own. */
const framing = new Set(['Iframe', 'IframePresentational', 'PluginObject', 'EmbeddedObject'])

/**
 * The accessibility tree of a tab's document and of the documents in its frames, without what only groups. What has no role
 * but answers to clicks is of role `clickable`. Throws {@link PageTooLarge}.
 */
export async function readTree(page: GuiPage): Promise<readonly TreeNode[]> {
  const elements = await page.look('() => document.getElementsByTagName("*").length', null)
  if (typeof elements === 'number' && elements > mostElements) {
    throw new PageTooLarge(
      `The page has ${elements} elements, too many to be shown as a tree. Use browser_text, and \`computer\` with its screenshots.`,
    )
  }
  const [top, clickable] = await Promise.all([readDocument(page, null), clickableIn(page)])
  if (top === null) return []
  const hasFrames = [...top.byId.values()].some(({ role }) => framing.has(text(role?.value)))
  const frames = hasFrames ? await framesIn(page) : new Map<number, Document>()
  const all = [top, ...frames.values()].flatMap(({ byId }) => [...byId.values()])
  const there = new Set(all.map(({ backendDOMNodeId }) => backendDOMNodeId))
  return below(top.root, top.byId, '', { frames, there, ...clickable })
}

async function readDocument(page: GuiPage, frameId: string | null): Promise<Document | null> {
  const { nodes } = await page.send('Accessibility.getFullAXTree', frameId === null ? {} : { frameId }, axTree)
  const [root] = nodes
  return root === undefined ? null : { root, byId: new Map(nodes.map((node) => [node.nodeId, node])) }
}

async function framesIn(page: GuiPage): Promise<ReadonlyMap<number, Document>> {
  const { frameTree: tree } = await page.send('Page.getFrameTree', {}, frameTree)
  const ids = (branch: FrameBranch): readonly string[] =>
    (branch.childFrames ?? []).flatMap((child) => [child.frame.id, ...ids(child)])
  const read = async (frameId: string): Promise<readonly (readonly [number, Document])[]> => {
    try {
      const { backendNodeId } = await page.send('DOM.getFrameOwner', { frameId }, frameOwner)
      const document = await readDocument(page, frameId)
      return document === null ? [] : [[backendNodeId, document]]
    } catch (error) {
      // A frame that went away meanwhile.
      if (error instanceof CdpRefusal) return []
      throw error
    }
  }
  return new Map((await Promise.all(ids(tree).slice(0, mostFrames).map(read))).flat())
}

const mostFrames = 50
const whole = new Set(['HTML', 'BODY', '#document'])

/** Nodes that listen to clicks, or over which the pointer becomes a hand, in all documents. */
async function clickableIn(page: GuiPage): Promise<Clickable> {
  const { documents, strings } = await page.send(
    'DOMSnapshot.captureSnapshot',
    { computedStyles: ['cursor'] },
    domSnapshot,
  )
  const found = new Set<number>()
  const around = new Map<number, number>()
  for (const { nodes, layout } of documents) {
    const hands = new Set(layout.nodeIndex.filter((_, at) => strings[layout.styles[at]?.[0] ?? -1] === 'pointer'))
    const outer = [...hands].filter((index) => !hands.has(nodes.parentIndex[index] ?? -1))
    for (const index of [...nodes.isClickable.index, ...outer]) {
      const id = nodes.backendNodeId[index]
      if (id !== undefined && !whole.has(strings[nodes.nodeName[index] ?? -1] ?? '')) found.add(id)
    }
    // Parents stand before what they hold.
    for (const [index, id] of nodes.backendNodeId.entries()) {
      const parent = nodes.backendNodeId[nodes.parentIndex[index] ?? -1]
      const nearest = parent === undefined || found.has(parent) ? parent : around.get(parent)
      if (nearest !== undefined) around.set(id, nearest)
    }
  }
  return { clickable: found, around }
}

function below(
  node: AxNode,
  byId: ReadonlyMap<string, AxNode>,
  nameAbove: string,
  reading: Reading,
): readonly TreeNode[] {
  const role = text(node.role?.value)
  const name = text(node.name?.value)
  const skipped = node.ignored || transparent.has(role)
  const inner = (above: string): readonly TreeNode[] =>
    (node.childIds ?? []).flatMap((id) => {
      const child = byId.get(id)
      return child === undefined ? [] : below(child, byId, above, reading)
    })
  if (skipped) {
    const id = node.backendDOMNodeId
    const answers = id !== undefined && (reading.clickable.has(id) || (role === 'generic' && isFocusable(node)))
    return answers ? clickableNode(id, inner('')) : inner(nameAbove)
  }
  if (role === 'StaticText') {
    // A button's own label is its name already.
    if (name === '' || nameAbove.includes(name)) return []
    const said = {
      role: 'text',
      name,
      value: '',
      states: [],
      backendNodeId: node.backendDOMNodeId ?? null,
      children: [],
    }
    const around = reading.around.get(node.backendDOMNodeId ?? -1)
    return around === undefined || reading.there.has(around) ? [said] : clickableNode(around, [said])
  }
  const frame = framing.has(role) ? reading.frames.get(node.backendDOMNodeId ?? -1) : undefined
  const value = valueOf(node, role)
  // What a field holds is its value already.
  const children = frame === undefined ? inner(`${name} ${value}`) : below(frame.root, frame.byId, '', reading)
  return [
    {
      role: role === 'MenuListOption' ? 'option' : frame === undefined ? role : 'Iframe',
      name,
      value,
      states: statesOf(node),
      backendNodeId: node.backendDOMNodeId ?? null,
      children,
    },
  ]
}

/**
 * What answers to clicks and has no role. It is named by its texts; of several each can be clicked, since a listener may tell
 * them apart. Where it holds something that can be pointed at already, that is enough: a click on it arrives here too.
 */
function clickableNode(backendNodeId: number, inside: readonly TreeNode[]): readonly TreeNode[] {
  if (inside.length > mostTexts || inside.some(({ role }) => role !== 'text')) return inside
  const name = inside.map((one) => one.name).join(' ')
  const children = inside.length < 2 ? [] : inside.map((one) => ({ ...one, role: 'clickable' }))
  return [{ role: 'clickable', name, value: '', states: [], backendNodeId, children }]
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

function isFocusable({ properties = [] }: AxNode): boolean {
  return properties.some(({ name, value: { value } }) => name === 'focusable' && value === true)
}

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
