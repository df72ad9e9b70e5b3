import type { Screen, SingleAction } from '../actions/index.ts'

/** What a command on a machine came to. */
export interface CommandResult {
  readonly returncode: number
  readonly output: string
  readonly error: string
}

/** A command as OSWorld's files and HTTP API write it: a list of arguments, or a line for a shell. */
export type MachineCommand = string | readonly string[]

/** A tab of the machine's browser, the one in front first. */
export interface Tab {
  readonly title: string
  readonly url: string
}

export interface WindowQuery {
  readonly name: string
  /** The whole name, upper and lower case as it is; else any part of it. */
  readonly strict: boolean
  /** By the class of the window in place of its title. */
  readonly byClass: boolean
}

/** A folder with what is below it, as OSWorld's `/list_directory` tells it. */
export type Listing =
  | { readonly type: 'directory'; readonly name: string; readonly children: readonly Listing[] }
  | { readonly type: 'file'; readonly name: string }

/**
 * A computer with a screen in the manner of OSWorld: what its set-up steps, its getters and its agents ask of it. One is a
 * desktop box of ours, the other any machine that OSWorld's own server runs on. Rejections are faults of the machine
 * (`BROWSER_GONE`, `BOX_DEAD`, `ENVIRONMENT_TOOL_FAILED`), never of an agent.
 */
export interface Machine extends AsyncDisposable {
  readonly screen: Screen
  /** True: it has a sudo of its own. False: what a command asks sudo for is done by `asRoot`. */
  readonly hasSudo: boolean
  /** A command that runs to its end. `asRoot` only where a box is ours; a machine of OSWorld has its own sudo. */
  execute(command: MachineCommand, o?: { readonly shell?: boolean; readonly asRoot?: boolean }): Promise<CommandResult>
  /** A program that goes on. Throws `TASK_UNSUPPORTED` when there is none of this name. */
  launch(command: MachineCommand, shell: boolean): Promise<void>
  upload(path: string, data: Uint8Array): Promise<void>
  /** Null: there is no such file. */
  file(path: string): Promise<Buffer | null>
  /** Null: it is no folder. */
  list(path: string): Promise<Listing | null>
  activateWindow(window: WindowQuery): Promise<boolean>
  closeWindow(window: WindowQuery): Promise<boolean>
  /** Null: no such window. */
  windowSize(className: string): Promise<Screen | null>
  pointer(): Promise<{ readonly x: number; readonly y: number }>
  /** PNG. */
  screenshot(): Promise<Uint8Array>
  /** XML in the manner of AT-SPI. */
  accessibility(): Promise<string>
  /** Text of the terminal in front; null when there is none. */
  terminal(): Promise<string | null>
  /** Does one canonical action that is input. */
  input(action: SingleAction): Promise<void>
  /** Presses or releases a key or a button, where a schema has these by themselves. */
  hold(what: { readonly key: string } | { readonly button: 'left' | 'middle' | 'right' }, down: boolean): Promise<void>
}

/** The browser of a machine, where it is ours to ask. */
export interface MachineBrowser {
  tabs(): Promise<readonly Tab[]>
  /** Title, address and markup of the tab in front. */
  front(): Promise<Tab & { readonly content: string }>
  openTabs(urls: readonly string[]): Promise<void>
  closeTabs(match: (url: string) => boolean): Promise<void>
}
