import { type LoadedConfig, PaddockError } from '../core/index.ts'
import { type Harness, harnessRegistry } from '../rollout/index.ts'

/** A built-in harness preset or one of the configuration. Throws `HARNESS_UNKNOWN`, and `USAGE` for a missing command. */
export async function harnessFor(loaded: LoadedConfig, name: string, command: string | null): Promise<Harness> {
  const registry = await harnessRegistry({ plugins: loaded.config.harnesses, directory: loaded.directory })
  if (command !== null && name !== 'shell' && name !== 'script') {
    throw new PaddockError('USAGE', `--command is for the harnesses shell and script, not for ${name}`)
  }
  return registry.get(name, { command })
}
