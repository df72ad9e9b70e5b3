import { called, type GuiPage, resolvedNode } from '../browser/index.ts'

/**
 * Resolves when the page has given an element its focus, or has not within half a second: not every element takes it. X
 * hands a click and the keys after it to the browser at once; keys that come before the click has done its work are lost.
 */
export async function hasFocus(page: GuiPage, backendNodeId: number): Promise<void> {
  const { object } = await page.send('DOM.resolveNode', { backendNodeId }, resolvedNode)
  await page.send(
    'Runtime.callFunctionOn',
    { objectId: object.objectId, functionDeclaration: waiting, awaitPromise: true },
    called,
  )
}

const waiting = `function () {
  const events = ['focusin', 'focus', 'focusout']
  return new Promise((resolve) => {
    const look = () => {
      const active = this.getRootNode().activeElement
      if (!document.hasFocus() || !active || !(this === active || this.contains(active))) return
      stop()
    }
    const stop = () => {
      clearTimeout(cap)
      for (const event of events) removeEventListener(event, look, true)
      resolve()
    }
    const cap = setTimeout(stop, 500)
    for (const event of events) addEventListener(event, look, true)
    look()
  })
}`
