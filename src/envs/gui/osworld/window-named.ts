import type { XWindow } from '../desktop/windows.ts'
import type { WindowQuery } from './machine.ts'

/** What OSWorld's files call the browser, whose windows say Chromium here. */
const browser = /^(?:google[ -])?chrome$/i

/** The first window that a query names; of several the one that was opened last. */
export function windowNamed(windows: readonly XWindow[], { name, strict, byClass }: WindowQuery): XWindow | null {
  const called = (text: string) => (strict ? text === name : text.toLowerCase().includes(name.toLowerCase()))
  const fits = (text: string) => called(text) || (browser.test(name) && /\bchromium\b/i.test(text))
  const names = ({ title, classes }: XWindow) => (byClass ? [classes.join('.'), ...classes] : [title])
  return windows.findLast((window) => names(window).some(fits)) ?? null
}
