import type { ToolOutcome } from '../../contract.ts'
import { type GuiPage, nothing, pastEntries } from '../browser/index.ts'
import type { GuiSession } from '../session.ts'

/**
 * Goes to an address. Only the web's own schemes: `javascript:` and `data:` would run code in the page's name, `file:`,
 * `chrome:` and their kin show what is no page.
 */
export async function navigate(session: GuiSession, url: string): Promise<ToolOutcome | string> {
  const parsed = URL.parse(url) ?? URL.parse(`http://${url}`)
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) {
    return { status: 'error', text: 'Only addresses that begin with http:// or https:// can be opened.' }
  }
  if (session.busy) {
    return { status: 'error', text: 'A dialog is open, so the page takes no input. Answer it with browser_dialog.' }
  }
  await session.browser.navigate(parsed.href)
  return `Went to ${parsed.href}.`
}

/** One step back in the history of a tab; false at its beginning. */
export async function goBack(page: GuiPage): Promise<boolean> {
  const { currentIndex, entries } = await page.send('Page.getNavigationHistory', {}, pastEntries)
  const before = entries[currentIndex - 1]
  if (before === undefined || before.url === 'about:blank') return false
  await page.send('Page.navigateToHistoryEntry', { entryId: before.id }, nothing)
  return true
}
