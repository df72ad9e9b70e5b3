import { type Command, InvalidArgumentError } from 'commander'
import { type ConfigInput, type LoadedConfig, loadConfig } from '../core/index.ts'
import type { ExitCode } from './exit.ts'
import type { Io } from './io.ts'
import { type Paint, painter } from './present/colour.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  readonly config?: string
  readonly data?: string
  readonly json?: boolean
  readonly verbose?: boolean
  /** False after `--no-color`. */
  readonly color?: boolean
}

/** What a command gets: streams, parsed configuration, and how it wants its answer. */
export interface CommandContext {
  readonly io: Io
  readonly loaded: LoadedConfig
  readonly json: boolean
  readonly verbose: boolean
  readonly paint: Paint
  /** Prints a result: the value with `--json`, else the text. */
  result(value: unknown, text: () => string): void
  /** A notice for people, on the error stream; silent with `--json`. */
  notice(text: string): void
}

/** What the commands are registered with. */
export interface Cli {
  readonly io: Io
  /**
   * Runs a command's body with its context; its exit code becomes the process's. `overrides` are the options of the
   * command that stand for configuration keys.
   */
  run(command: Command, overrides: ConfigInput, body: (context: CommandContext) => Promise<ExitCode>): Promise<void>
}

/** Builds a command's context: global options, configuration, presentation. */
export async function openContext(io: Io, options: GlobalOptions, overrides: ConfigInput): Promise<CommandContext> {
  const store = options.data === undefined ? overrides.store : { ...overrides.store, directory: options.data }
  const loaded = await loadConfig({
    cwd: io.cwd,
    env: io.env,
    ...(options.config === undefined ? {} : { file: options.config }),
    overrides: { ...overrides, ...(store === undefined ? {} : { store }) },
  })
  const json = options.json ?? false
  return {
    io,
    loaded,
    json,
    verbose: options.verbose ?? false,
    paint: painter(io.colour && options.color !== false && !json),
    result: (value, text) => io.out(json ? JSON.stringify(value, null, 2) : text()),
    notice: (text) => {
      if (!json) io.err(text)
    },
  }
}

/** Commander parser for options that may be given several times. */
export function repeated(text: string, before?: readonly string[]): readonly string[] {
  return [...(before ?? []), text]
}

/** Commander parser for whole numbers of at least `least`. */
export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isInteger(value) || value < least) {
      throw new InvalidArgumentError(`Give a whole number of at least ${least}.`)
    }
    return value
  }
}
