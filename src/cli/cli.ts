import { readFile } from 'node:fs/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { type ConfigInput, foundConfig, type LoadedConfig, loadConfig } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import { asTyped } from './called.ts'
import type { ExitCode } from './exit.ts'
import type { Io } from './io.ts'
import { type Paint, painter } from './present/colour.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  /** False after `--no-config`. */
  readonly config?: string | false
  readonly data?: string
  readonly catalogue?: string
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
  /** The words that start this program again ({@link calledAs}). Next steps begin with them. */
  readonly called: string
  /** One of Paddock's texts, its commands as they can be typed ({@link asTyped}). Never what was recorded. */
  typed(this: void, text: string): string
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
  /** The same where a configuration that is refused is a result: `refused` says why, and the context has the defaults then. */
  look(
    command: Command,
    body: (context: CommandContext, refused: PaddockError | null) => Promise<ExitCode>,
  ): Promise<void>
}

/** Builds a command's context: global options, configuration, presentation. */
export async function openContext(io: Io, options: GlobalOptions, overrides: ConfigInput): Promise<CommandContext> {
  const store = {
    ...overrides.store,
    ...(options.data === undefined ? {} : { directory: options.data }),
    ...(options.catalogue === undefined ? {} : { catalogue: options.catalogue === 'none' ? null : options.catalogue }),
  }
  const loaded = await loadConfig({
    cwd: io.cwd,
    env: io.env,
    ...(options.config === undefined ? {} : { file: options.config }),
    overrides: { ...overrides, ...(Object.keys(store).length === 0 ? {} : { store }) },
  })
  const json = options.json ?? false
  const { called = 'paddock' } = io
  const typed = (text: string): string => asTyped(text, called)
  if (loaded.file !== null && !json) io.err(`Configuration: ${loaded.file}`)
  return {
    io,
    loaded,
    json,
    verbose: options.verbose ?? false,
    paint: painter(io.colour && options.color !== false && !json),
    called,
    typed,
    result: (value, text) => io.out(json ? JSON.stringify(value, null, 2) : text()),
    notice: (text) => {
      if (!json) io.err(typed(text))
    },
  }
}

/**
 * The context of a command that runs no code of the user's: a configuration file is not read, and `--config` is refused.
 * Throws `USAGE`.
 */
export async function openReading(
  io: Io,
  options: GlobalOptions,
  name: string,
  overrides: ConfigInput,
): Promise<CommandContext> {
  if (typeof options.config === 'string') {
    throw new PaddockError('USAGE', `${name} runs no code of yours, and a configuration is code`, {
      fix: 'Leave --config out; name the store with --data.',
    })
  }
  const context = await openContext(io, { ...options, config: false }, overrides)
  const file = await foundConfig(io.cwd, io.env)
  // Only its store would matter here: a file that never says the word, and imports no other file, names none.
  if (file !== null && /\bstore\b|['"]\.\.?\//.test(await readFile(file, 'utf8').catch(() => 'store'))) {
    context.notice(`A store that ${file} names is not used: ${name} runs no code of yours. Name it with --data.`)
  }
  return context
}

/** Commander parser for options that may be given several times. */
export function repeated(text: string, before?: readonly string[]): readonly string[] {
  return [...(before ?? []), text]
}

/** Commander parser for whole numbers from `least` to `most`. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isInteger(value) || value < least || value > most) {
      const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
      throw new InvalidArgumentError(`Give a whole number ${range}.`)
    }
    return value
  }
}

/** Commander parser for a part of a whole. */
export function share(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('Give a number from 0 to 1.')
  return value
}

/** Commander parser for `name=value` options that may be given several times. */
export function labels(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Give name=value.')
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}
