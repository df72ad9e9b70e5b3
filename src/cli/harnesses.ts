import { type LoadedConfig, PaddockError } from '../core/index.ts'
import { type Harness, harnessRegistry } from '../rollout/index.ts'
import { loadPlugin } from './plugins.ts'

/** A built-in harness preset or one of the configuration. Throws `HARNESS_UNKNOWN`, and `USAGE` for a missing command. */
export async function harnessFor(loaded: LoadedConfig, name: string, command: string | null): Promise<Harness> {
  const { config, directory } = loaded
  const plugins = await Promise.all(config.harnesses.map((plugin) => loadPlugin(plugin, directory, 'HARNESS_INVALID')))
  const registry = harnessRegistry({ plugins: plugins.map(asHarness) })
  if (command !== null && (name === 'reference' || name === 'qwen-code')) {
    throw new PaddockError('USAGE', `--command is for the harnesses shell and script, not for ${name}`)
  }
  return registry.get(name, { command })
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
