import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PaddockError } from '../core/index.ts'
import type { ImageOptions, NpmFile } from './contract/index.ts'

/**
 * Installs npm packages below `directory` with the user's own npm and registry settings. No install script runs, and
 * optional dependencies stay out: what arrives is what the registry's integrity hashes name. Throws `BUNDLE_FAILED`.
 */
export async function installPackages(
  directory: string,
  packages: readonly string[],
  o: Pick<ImageOptions, 'signal'>,
): Promise<void> {
  await writeFile(join(directory, 'package.json'), '{"private":true}\n')
  await runNpm(directory, packages, o)
}

/** One file of a package. Throws `BUNDLE_FAILED` when the package or the file is not there. */
export async function readNpmFile({ package: name, version, file }: NpmFile, o: ImageOptions): Promise<Uint8Array> {
  o.onProgress?.(`fetching ${name} ${version} from the npm registry`)
  const directory = await mkdtemp(join(tmpdir(), 'paddock-npm-'))
  try {
    await installPackages(directory, [`${name}@${version}`], o)
    return await readFile(join(directory, 'node_modules', name, file)).catch((cause: unknown) => {
      throw new PaddockError('BUNDLE_FAILED', `The package ${name} ${version} has no ${file}`, { cause })
    })
  } finally {
    await rm(directory, { recursive: true })
  }
}

function runNpm(
  directory: string,
  packages: readonly string[],
  { signal }: Pick<ImageOptions, 'signal'>,
): Promise<void> {
  const flags = ['--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error', '--save-exact']
  const npm = spawn('npm', ['install', ...flags, ...packages], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(signal === undefined ? {} : { signal }),
  })
  let said = ''
  npm.stderr.setEncoding('utf8').on('data', (text: string) => (said = `${said}${text}`.slice(-2000)))
  return new Promise((resolve, reject) => {
    const failed = (how: string, cause?: unknown) => {
      reject(
        new PaddockError('BUNDLE_FAILED', `npm install ${packages.join(' ')} failed (${how}): ${said.trim()}`, {
          cause,
        }),
      )
    }
    npm.on('error', (error) => (signal?.aborted === true ? reject(signal.reason) : failed(error.message, error)))
    npm.on('close', (code, killedBy) => (code === 0 ? resolve() : failed(killedBy ?? `exit ${code}`)))
  })
}
