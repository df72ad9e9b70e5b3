import type { XWindow } from '../desktop/windows.ts'
import type { WindowQuery } from './machine.ts'

/** The first window that a query names; of several the one that was opened last. */
export function windowNamed(windows: readonly XWindow[], { name, strict, byClass }: WindowQuery): XWindow | null {
  const fits = (text: string) => (strict ? text === name : text.toLowerCase().includes(name.toLowerCase()))
  const names = ({ title, classes }: XWindow) => (byClass ? [classes.join('.'), ...classes] : [title])
  return windows.findLast((window) => names(window).some(fits)) ?? null
}
