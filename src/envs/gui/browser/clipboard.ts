import { z } from 'zod'
import type { GuiPage } from './page.ts'
import { nothing } from './shapes.ts'

/** Puts a text on the clipboard, as if a page of the user's had copied it; the page in front is told of nothing. */
export async function writeClipboard(page: GuiPage, text: string): Promise<void> {
  await page.look(copy, text, false, true)
}

/** What the clipboard holds as text, read by pasting into a field of an empty tab that is ours. */
export async function pasteInto(empty: GuiPage): Promise<string> {
  await empty.look("() => document.body.appendChild(document.createElement('textarea')).focus()", null)
  await empty.send('Input.dispatchKeyEvent', pasteKeys, nothing)
  return z.string().parse(await empty.look("() => document.querySelector('textarea').value", null))
}

/** The key does what a browser window would do for it (CDP, Input.dispatchKeyEvent, commands). */
const pasteKeys = {
  type: 'rawKeyDown',
  key: 'v',
  code: 'KeyV',
  windowsVirtualKeyCode: 86,
  modifiers: 2,
  commands: ['paste'],
}

const copy = `(text) => {
  const take = (event) => {
    event.stopImmediatePropagation()
    event.preventDefault()
    event.clipboardData.setData('text/plain', text)
  }
  window.addEventListener('copy', take, { capture: true })
  document.execCommand('copy')
  window.removeEventListener('copy', take, { capture: true })
}`
