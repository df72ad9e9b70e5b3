import { PaddockError } from '../../core/index.ts'
import { claudeCode } from './claude-code/index.ts'
import { cline } from './cline/index.ts'
import { codex } from './codex/index.ts'
import type { Harness, PinnedVersion } from './contract.ts'
import { defineHarness } from './define.ts'
import { geminiCli } from './gemini-cli/index.ts'
import { guiTextAgent } from './gui-text/index.ts'
import { opencode } from './opencode/index.ts'
import { piHarness } from './pi/index.ts'
import { qwenCode } from './qwen-code/index.ts'
import { referenceAgent } from './reference/index.ts'
import { scriptHarness, type ScriptOptions } from './script/index.ts'
import { shellHarness, type ShellOptions } from './shell/index.ts'
import { reExSql, skyRlSql, tagAgent } from './tags/index.ts'

/** What a preset is made with. */
export interface HarnessOptions {
  /** Command line of `shell` and `script`. */
  readonly command?: string | null
  /** Versions of the programs of built-in presets, by name. Default: those that the presets were tested with. */
  readonly versions?: Readonly<Record<string, string>>
  /** What `shell` brings into the box beside the command. */
  readonly shell?: Pick<ShellOptions, 'bundle' | 'env' | 'again'>
  /** Variables that `script` gets. */
  readonly script?: Pick<ScriptOptions, 'env' | 'pass'>
}

/** The harnesses of this process: presets built in and those of the configuration. */
export interface HarnessRegistry {
  readonly names: readonly string[]
  /** Throws `HARNESS_UNKNOWN` with the names that exist, `USAGE` when the preset needs a command and has none. */
  get(name: string, options?: HarnessOptions): Harness
}

/** Presets whose program comes from npm. */
const fetched: Readonly<Record<string, (pin: PinnedVersion) => Harness>> = {
  'claude-code': claudeCode,
  cline,
  codex,
  'gemini-cli': geminiCli,
  opencode,
  pi: piHarness,
  'qwen-code': qwenCode,
}

/** Names of the presets that take a version. */
export const pinnableHarnesses: readonly string[] = Object.keys(fetched)

const builtIn: Readonly<Record<string, (options: HarnessOptions) => Harness>> = {
  ...Object.fromEntries(
    Object.entries(fetched).map(([name, make]) => [
      name,
      ({ versions }: HarnessOptions) => {
        const version = versions?.[name]
        return make(version === undefined ? {} : { version })
      },
    ]),
  ),
  reference: () => referenceAgent(),
  'gui-text': () => guiTextAgent(),
  'reex-sql': () => tagAgent(reExSql),
  'skyrl-sql': () => tagAgent(skyRlSql),
  shell: (options) => shellHarness({ ...options.shell, command: needCommand('shell', options) }),
  script: (options) => scriptHarness({ ...options.script, command: needCommand('script', options) }),
}

/** Throws `HARNESS_INVALID` for a plugin that is not usable or takes a name that is taken. */
export function harnessRegistry(o: { readonly plugins?: readonly Harness[] } = {}): HarnessRegistry {
  const known = new Map(Object.entries(builtIn))
  for (const plugin of o.plugins ?? []) {
    const harness = defineHarness(plugin)
    if (known.has(harness.name)) {
      throw new PaddockError('HARNESS_INVALID', `There are two harnesses named ${harness.name}`, {
        fix: 'Rename the plugin, or list it once.',
      })
    }
    known.set(harness.name, () => harness)
  }
  const names = [...known.keys()].toSorted()
  return {
    names,
    get: (name, options = {}) => {
      const make = known.get(name)
      if (make !== undefined) return make(options)
      throw new PaddockError('HARNESS_UNKNOWN', `There is no harness ${JSON.stringify(name)}`, {
        data: { name, known: names },
        fix: `Use one of ${names.join(', ')}, or list the preset under harnesses in paddock.config.ts.`,
      })
    },
  }
}

function needCommand(name: string, { command }: HarnessOptions): string {
  if (typeof command === 'string' && command.trim() !== '') return command
  throw new PaddockError('USAGE', `The harness ${name} needs a command`, {
    fix: `Say what it runs: --harness ${name} --command '…'.`,
  })
}
