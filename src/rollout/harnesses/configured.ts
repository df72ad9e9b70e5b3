import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, copyFile, mkdir } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { PresetInput } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'
import type { BoxHarness, HarnessBundle } from './contract.ts'
import { npmBundle } from './npm-bundle.ts'
import type { HarnessOptions } from './registry.ts'
import { shellHarness } from './shell/index.ts'

/** What a configuration says of the harnesses that it names, made into presets. */
export interface ConfiguredPresets {
  readonly own: readonly BoxHarness[]
  readonly options: HarnessOptions
}

/**
 * Presets of the configuration that need no code: an npm package or a program of this machine with a command line, a version
 * for a built-in preset, a bundle for `shell`. `directory` is what paths are relative to; `pinnable` are the names of presets
 * that take a version. Throws `HARNESS_INVALID` that names the preset and the fix.
 */
export async function configuredPresets(
  presets: Readonly<Record<string, PresetInput>>,
  o: { readonly directory: string; readonly pinnable: readonly string[] },
): Promise<ConfiguredPresets> {
  const own: BoxHarness[] = []
  const versions: Record<string, string> = {}
  let shell: HarnessOptions['shell'] = undefined
  let script: HarnessOptions['script'] = undefined
  for (const [name, preset] of Object.entries(presets)) {
    const { version, run, again, env, dialect } = preset
    if (o.pinnable.includes(name)) {
      versions[name] = pinned(name, preset)
      continue
    }
    if (name === 'script') {
      script = scriptVariables(preset)
      continue
    }
    if (preset.pass !== undefined)
      throw invalid(name, '`pass` is for script, whose command runs on this machine', 'Write the variables into `env`.')
    if (version !== undefined) throw invalid(name, '`version` is for built-in presets', 'Write it into `npm`: x@1.2.3.')
    const bundle = await bundleOf(name, preset, o.directory)
    if (name === 'shell') {
      if (run !== undefined || dialect !== undefined) {
        throw invalid(name, 'its command comes from --command', 'Leave `run` and `dialect` out, or use another name.')
      }
      shell = { bundle, ...(env === undefined ? {} : { env }), ...(again === undefined ? {} : { again }) }
      continue
    }
    if (run === undefined) throw invalid(name, '`run` is missing', 'Say what the shell of the box runs.')
    own.push(
      shellHarness({
        name,
        command: run,
        bundle,
        env: env ?? {},
        ...(again === undefined ? {} : { again }),
        ...(dialect === undefined ? {} : { dialect }),
      }),
    )
  }
  const options = { versions, ...(shell === undefined ? {} : { shell }), ...(script === undefined ? {} : { script }) }
  return { own, options }
}

function scriptVariables({ env, pass, ...others }: PresetInput): NonNullable<HarnessOptions['script']> {
  const [other] = Object.entries(others).flatMap(([key, value]) => (value === undefined ? [] : [key]))
  if (other !== undefined)
    throw invalid('script', `\`${other}\` is not for it`, 'Give `env` and `pass`; its command comes from --command.')
  return { env: env ?? {}, pass: pass ?? [] }
}

function pinned(name: string, { version, ...others }: PresetInput): string {
  const [other] = Object.entries(others).flatMap(([key, value]) => (value === undefined ? [] : [key]))
  if (other !== undefined) {
    throw invalid(name, `\`${other}\` is not for a built-in preset`, 'Give `version` alone, or use another name.')
  }
  if (version === undefined) throw invalid(name, '`version` is missing', 'Give the version of the program, like 1.2.3.')
  return version
}

async function bundleOf(name: string, { npm, binary }: PresetInput, directory: string): Promise<HarnessBundle | null> {
  if (npm !== undefined && binary !== undefined) throw invalid(name, 'it has `npm` and `binary`', 'Give one of them.')
  if (npm !== undefined) {
    const at = npm.lastIndexOf('@')
    return npmBundle({ name, package: npm.slice(0, at), version: npm.slice(at + 1) })
  }
  return binary === undefined ? null : binaryBundle(name, resolve(directory, binary))
}

/** One program of this machine, which is found in the box by its file name. */
async function binaryBundle(name: string, path: string): Promise<HarnessBundle> {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(path), hash)
  } catch (cause) {
    throw new PaddockError('HARNESS_INVALID', `The harness ${name}: ${path} cannot be read`, {
      fix: '`binary` is the path of one file, relative to the configuration.',
      cause,
    })
  }
  return {
    name,
    version: hash.digest('hex').slice(0, 16),
    build: async (into) => {
      const target = join(into, 'bin', basename(path))
      await mkdir(join(into, 'bin'))
      await copyFile(path, target)
      await chmod(target, 0o755)
    },
  }
}

function invalid(name: string, what: string, fix: string): PaddockError {
  return new PaddockError('HARNESS_INVALID', `The harness ${name} of the configuration: ${what}`, { fix })
}
