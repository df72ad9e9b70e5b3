import type { PlayStep } from '../../../contract.ts'

const tool = (name: string, args: Readonly<Record<string, unknown>>): PlayStep => ({ tool: name, args })

/** Steps of plays, by the tools of the environment. */
export const look = (): PlayStep => tool('browser_snapshot', {})
export const click = (target: string): PlayStep => tool('browser_click', { target })
export const doubleClick = (target: string): PlayStep => tool('browser_click', { target, times: 2 })
export const type = (target: string, text: string): PlayStep => tool('browser_type', { target, text })
export const enter = (target: string, text: string): PlayStep => tool('browser_type', { target, text, submit: true })
export const select = (target: string, option: string): PlayStep => tool('browser_select', { target, option })
export const drag = (from: string, to: string): PlayStep => tool('browser_drag', { from, to })
export const press = (keys: string): PlayStep => tool('computer', { action: 'key', keys })
export const write = (text: string): PlayStep => tool('computer', { action: 'type', text })
export const computer = (action: Readonly<Record<string, unknown>>): PlayStep => tool('computer', action)
export const go = (url: string): PlayStep => tool('browser_navigate', { url })
export const dialog = (accept: boolean, text?: string): PlayStep =>
  tool('browser_dialog', { accept, ...(text === undefined ? {} : { text }) })
export const terminal = (command: string): PlayStep => tool('terminal_run', { command })
export const upload = (target: string, files: readonly string[]): PlayStep => tool('browser_upload', { target, files })
export const saveDownload = (name: string): PlayStep => tool('browser_save_download', { name })
export const done = (): PlayStep => tool('computer', { action: 'done' })
export const answer = (text: string): PlayStep => tool('computer', { action: 'answer', text })

/** A name inside a target. */
export const q = (name: string): string => JSON.stringify(name)
