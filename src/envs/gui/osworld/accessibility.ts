import type { GuiPage } from '../browser/index.ts'
import { PageTooLarge, readTree } from '../browser/index.ts'
import { placeOnPage } from './place.ts'
import type { XWindow } from '../desktop/windows.ts'

/** Namespaces of OSWorld's tree on Ubuntu (desktop_env/server/main.py, `_accessibility_ns_map_ubuntu`). */
const spaces = {
  st: 'https://accessibility.ubuntu.example.org/ns/state',
  attr: 'https://accessibility.ubuntu.example.org/ns/attributes',
  cp: 'https://accessibility.ubuntu.example.org/ns/component',
  doc: 'https://accessibility.ubuntu.example.org/ns/document',
  docattr: 'https://accessibility.ubuntu.example.org/ns/document/attributes',
  txt: 'https://accessibility.ubuntu.example.org/ns/text',
  val: 'https://accessibility.ubuntu.example.org/ns/value',
  act: 'https://accessibility.ubuntu.example.org/ns/action',
}

/** Elements whose place is looked up; the rest of a long page has none. */
const placedAtMost = 400

export interface AccessibilityParts {
  readonly windows: readonly (XWindow & {
    readonly place: { readonly x: number; readonly y: number; readonly width: number; readonly height: number }
  })[]
  readonly page: GuiPage
  readonly title: string
  /** Where a point of the page lies on the screen. */
  onScreen(point: { readonly x: number; readonly y: number }): Promise<{ readonly x: number; readonly y: number }>
}

/**
 * The screen as a tree in OSWorld's form: one application for each window, and below the browser's the page as the browser's
 * own accessibility tree has it. Programs other than the browser show as their window only: there is no AT-SPI in the box.
 */
export async function accessibilityXml(parts: AccessibilityParts): Promise<string> {
  const { windows, page, title } = parts
  let placed = 0
  const origin = await parts.onScreen({ x: 0, y: 0 })
  const node = async (one: Awaited<ReturnType<typeof readTree>>[number]): Promise<string> => {
    const place =
      one.backendNodeId === null || placed++ >= placedAtMost ? null : await placeOnPage(page, one.backendNodeId)
    const children = (await Promise.all(one.children.map(node))).join('')
    const states = ['visible', 'showing', 'enabled', ...one.states].filter(
      (state) => state !== 'enabled' || !one.states.includes('disabled'),
    )
    const where =
      place === null
        ? ''
        : ` cp:screencoord="(${place.x + origin.x}, ${place.y + origin.y})" cp:size="(${place.width}, ${place.height})"`
    return element(tagOf(one.role), one.name, states, `${where}`, text(one.value) + children)
  }
  const tree = await readTree(page).catch((error: unknown) => {
    if (error instanceof PageTooLarge) return []
    throw error
  })
  const body = (await Promise.all(tree.map(node))).join('')
  const frames = windows.map((window) => {
    const { place, classes, isActive } = window
    const where = ` cp:screencoord="(${place.x}, ${place.y})" cp:size="(${place.width}, ${place.height})"`
    const inner = isBrowser(window)
      ? element('entry', 'Address and search bar', ['visible', 'showing'], '', text(addressOf(page.url))) +
        element('document-web', title, ['visible', 'showing'], '', body)
      : ''
    const frame = element(
      'frame',
      window.title,
      isActive ? ['active', 'visible', 'showing'] : ['visible'],
      where,
      inner,
    )
    return element('application', isBrowser(window) ? 'Chromium' : (classes.at(-1) ?? window.title), [], '', frame)
  })
  const declared = Object.entries(spaces).map(([prefix, uri]) => ` xmlns:${prefix}="${uri}"`)
  return `<desktop-frame${declared.join('')} name="main">${frames.join('')}</desktop-frame>`
}

/** True for the window of the browser. */
export function isBrowser({ classes }: Pick<XWindow, 'classes'>): boolean {
  return classes.some((name) => name.toLowerCase().includes('chromium'))
}

/** As the address bar shows it: without `https://`. */
function addressOf(url: string): string {
  return url.replace(/^https:\/\//, '')
}

const roles: Readonly<Record<string, string>> = {
  button: 'push-button',
  textbox: 'entry',
  searchbox: 'entry',
  combobox: 'combo-box',
  checkbox: 'check-box',
  radio: 'radio-button',
  listitem: 'list-item',
  menuitem: 'menu-item',
  text: 'static',
  cell: 'table-cell',
  row: 'table-row',
  img: 'image',
}

/** AT-SPI's name of a role where it differs, in the form of a tag. */
function tagOf(role: string): string {
  const known = roles[role.toLowerCase()] ?? role.replaceAll(/([a-z])([A-Z])/g, '$1-$2').toLowerCase()
  const tag = known.replaceAll(/[^a-z0-9-]+/g, '-')
  return /^[a-z]/.test(tag) ? tag : 'unknown'
}

function element(tag: string, name: string, states: readonly string[], extra: string, inner: string): string {
  const marks = states
    .filter((state) => /^[a-z]+$/.test(state))
    .map((state) => ` st:${state}="true"`)
    .join('')
  return `<${tag} name="${text(name)}"${marks}${extra}>${inner}</${tag}>`
}

/** Text as XML 1.0 may have it. */
function text(value: string): string {
  const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return Array.from(value)
    .filter((sign) => sign >= ' ' || sign === '\n' || sign === '\t')
    .map((sign) => signs[sign] ?? sign)
    .join('')
}
