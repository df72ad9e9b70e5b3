import type { LoadedConfig, PluginRef, PresetInput } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import {
  configuredPresets,
  type Harness,
  type HarnessOptions,
  type HarnessRegistry,
  harnessRegistry,
  pinnableHarnesses,
} from '../rollout/index.ts'
import { loadPlugin } from './plugins.ts'

/** A built-in harness preset or one of the configuration. Throws `HARNESS_UNKNOWN`, and `USAGE` for a missing command. */
export async function harnessFor(loaded: LoadedConfig, name: string, command: string | null): Promise<Harness> {
  const { registry, options } = await configured(loaded)
  if (command !== null && registry.names.includes(name) && !takesCommand(name)) {
    throw new PaddockError('USAGE', `--command is for the harnesses shell and script, not for ${name}`, {
      fix: 'Leave --command out, or add `--harness shell`.',
    })
  }
  return registry.get(name, { ...options, command })
}

/** Whether a preset runs a command of the user's. */
export function takesCommand(name: string): boolean {
  return name === 'shell' || name === 'script'
}

/** Names of the harnesses that need no command: presets built in and those of the configuration. */
export async function harnessNames(loaded: LoadedConfig): Promise<readonly string[]> {
  return (await configured(loaded)).registry.names.filter((name) => !takesCommand(name))
}

interface Configured {
  readonly registry: HarnessRegistry
  readonly options: HarnessOptions
}

async function configured({ config, directory }: LoadedConfig): Promise<Configured> {
  const { harnesses } = config
  const load = async (plugin: PluginRef): Promise<Harness> =>
    asHarness(await loadPlugin(plugin, directory, 'HARNESS_INVALID'))
  if (Array.isArray(harnesses)) {
    return { registry: harnessRegistry({ plugins: await Promise.all(harnesses.map(load)) }), options: {} }
  }
  const presets: Record<string, PresetInput> = {}
  const plugins: Harness[] = []
  for (const [name, given] of Object.entries(harnesses)) {
    if (typeof given === 'string') plugins.push({ ...(await load(given)), name })
    else presets[name] = given
  }
  const { own, options } = await configuredPresets(presets, { directory, pinnable: pinnableHarnesses })
  return { registry: harnessRegistry({ plugins: [...plugins, ...own] }), options }
}

function asHarness(value: unknown): Harness {
  if (isHarness(value)) return value
  throw new PaddockError('HARNESS_INVALID', 'a plugin under harnesses is no harness preset', {
    fix: 'Export default defineHarness({ … }).',
  })
}

/** Enough to hand it to the registry, which checks the rest. */
function isHarness(value: unknown): value is Harness {
  return typeof value === 'object' && value !== null && 'place' in value && 'apiVersion' in value && 'name' in value
}
