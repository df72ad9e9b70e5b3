import { type LoadedConfig, PaddockError } from '../core/index.ts'
import { type Harness, type HarnessRegistry, harnessRegistry } from '../rollout/index.ts'
import { loadPlugin } from './plugins.ts'

/** A built-in harness preset or one of the configuration. Throws `HARNESS_UNKNOWN`, and `USAGE` for a missing command. */
export async function harnessFor(loaded: LoadedConfig, name: string, command: string | null): Promise<Harness> {
  const registry = await registryOf(loaded)
  if (command !== null && registry.names.includes(name) && !takesCommand(name)) {
    throw new PaddockError('USAGE', `--command is for the harnesses shell and script, not for ${name}`)
  }
  return registry.get(name, { command })
}

/** Whether a preset runs a command of the user's. */
export function takesCommand(name: string): boolean {
  return name === 'shell' || name === 'script'
}

/** Names of the harnesses that need no command: presets built in and those of the configuration. */
export async function harnessNames(loaded: LoadedConfig): Promise<readonly string[]> {
  return (await registryOf(loaded)).names.filter((name) => !takesCommand(name))
}

async function registryOf({ config, directory }: LoadedConfig): Promise<HarnessRegistry> {
  const plugins = await Promise.all(config.harnesses.map((plugin) => loadPlugin(plugin, directory, 'HARNESS_INVALID')))
  return harnessRegistry({ plugins: plugins.map(asHarness) })
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
