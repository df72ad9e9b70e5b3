import type { ToolOutcome } from '../../contract.ts'
import { called, type GuiPage, nothing, type ReferredNode, resolvedNode } from '../browser/index.ts'

/** Chooses an option of a native list as a person does: the list changes and says so to the page. */
export async function selectOption(page: GuiPage, node: ReferredNode, option: string): Promise<ToolOutcome | string> {
  const { backendNodeId } = node
  await page.send('DOM.focus', { backendNodeId }, nothing)
  const { object } = await page.send('DOM.resolveNode', { backendNodeId }, resolvedNode)
  const { result } = await page.send(
    'Runtime.callFunctionOn',
    { objectId: object.objectId, functionDeclaration: choose, arguments: [{ value: option }], returnByValue: true },
    called,
  )
  if (result.value === null) return 'Chosen.'
  if (typeof result.value !== 'string') return { status: 'error', text: 'The element is no drop-down list.' }
  return {
    status: 'error',
    text: `The list has no option ${JSON.stringify(option)}. Options: ${result.value}.`,
  }
}

/** Null when it was chosen, undefined for what is no list, else the options that there are. */
const choose = `function (wanted) {
  if (!(this instanceof HTMLSelectElement)) return undefined
  const found = [...this.options].find((one) => one.label.trim() === wanted.trim())
  if (found === undefined) return [...this.options].map((one) => one.label.trim()).slice(0, 50).join(', ')
  if (!found.selected) {
    found.selected = true
    this.dispatchEvent(new Event('input', { bubbles: true }))
    this.dispatchEvent(new Event('change', { bubbles: true }))
  }
  return null
}`
