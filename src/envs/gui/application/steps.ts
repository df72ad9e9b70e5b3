import type { ScriptStep } from '../../contract.ts'

const tool = (name: string, args: Readonly<Record<string, unknown>>): ScriptStep => ({ tool: name, args })

/** Steps of scripts, by the tools of the environment. */
export const look = (): ScriptStep => tool('browser_snapshot', {})
export const click = (target: string): ScriptStep => tool('browser_click', { target })
export const doubleClick = (target: string): ScriptStep => tool('browser_click', { target, times: 2 })
export const type = (target: string, text: string): ScriptStep => tool('browser_type', { target, text })
export const enter = (target: string, text: string): ScriptStep => tool('browser_type', { target, text, submit: true })
export const select = (target: string, option: string): ScriptStep => tool('browser_select', { target, option })
export const drag = (from: string, to: string): ScriptStep => tool('browser_drag', { from, to })
export const press = (keys: string): ScriptStep => tool('computer', { action: 'key', keys })
export const write = (text: string): ScriptStep => tool('computer', { action: 'type', text })
export const computer = (action: Readonly<Record<string, unknown>>): ScriptStep => tool('computer', action)
export const go = (url: string): ScriptStep => tool('browser_navigate', { url })
export const dialog = (accept: boolean, text?: string): ScriptStep =>
  tool('browser_dialog', { accept, ...(text === undefined ? {} : { text }) })
export const terminal = (command: string): ScriptStep => tool('terminal_run', { command })
export const upload = (target: string, files: readonly string[]): ScriptStep =>
  tool('browser_upload', { target, files })
export const saveDownload = (name: string): ScriptStep => tool('browser_save_download', { name })
export const done = (): ScriptStep => tool('computer', { action: 'done' })
export const answer = (text: string): ScriptStep => tool('computer', { action: 'answer', text })

/** A name inside a target. */
export const q = (name: string): string => JSON.stringify(name)
