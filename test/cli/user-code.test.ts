/** Whose code runs when `paddock` is called: configurations and plugins are planted wherever one could lie. */
import { chmod, chown, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/program.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const isRoot = process.geteuid?.() === 0
let directory: string
/** Appears when planted code runs. */
let ran: string
beforeEach(async () => {
  directory = tempDir()
  ran = join(directory, 'ran')
})

async function paddock(cwd: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    status: () => undefined,
    env,
    cwd,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

/** A module that says that it ran, with a default export. */
const telling = (value: string) =>
  `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(ran)}, '')\nexport default ${value}\n`

async function plant(folder: string, name = 'paddock.config.ts', value = '{}'): Promise<string> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, name)
  await writeFile(path, telling(value), { mode: 0o644 })
  return path
}

const exporting = ['export', '--format', 'nowhere', '--out', 'out'] as const

describe('a configuration in the working directory', () => {
  it.each([['list'], ['show', '5f3a9c21'], ['fsck'], ['view']])(
    'is never run by %s, which says so where it may name a store, and takes no --config by its help',
    async (...args) => {
      const file = await plant(directory)
      expect((await paddock(directory, args)).err).not.toContain(file)
      await plant(directory, 'paddock.config.ts', "{ store: { directory: 'elsewhere' } }")
      const { err } = await paddock(directory, args)
      expect(existsSync(ran)).toBe(false)
      expect(err).toContain(`A store that ${file} names is not used`)
      expect((await paddock(directory, [args[0], '--help'])).out).not.toContain('-config')
      const named = await paddock(directory, [...args, '--config', file])
      expect(named).toMatchObject({ code: 2, err: expect.stringMatching(/^USAGE: .*no code of yours.*--data/) })
      await paddock(directory, args, { PADDOCK_CONFIG: file })
      expect(existsSync(ran)).toBe(false)
    },
  )

  it('is run by other commands when it is the own one, and its path is printed', async () => {
    const file = await plant(directory)
    const { err } = await paddock(directory, exporting)
    expect(err).toContain(`Configuration: ${file}`)
    expect(existsSync(ran)).toBe(true)
  })

  it('is not run with --no-config, also where a variable names it', async () => {
    const file = await plant(directory)
    const { err } = await paddock(directory, ['--no-config', ...exporting], { PADDOCK_CONFIG: file })
    expect(err).not.toContain('Configuration:')
    expect(existsSync(ran)).toBe(false)
  })

  const isRefused = async (weaken: (file: string) => Promise<void>): Promise<void> => {
    const file = await plant(directory)
    await weaken(file)
    const refused = await paddock(directory, exporting)
    expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/^CONFIG_UNTRUSTED: .* can be written by/) })
    expect(existsSync(ran)).toBe(false)
    await paddock(directory, [...exporting, '--config', file])
    expect(existsSync(ran)).toBe(true)
  }
  it.each([
    ['the file can be written by everybody', (file: string) => chmod(file, 0o666)],
    ['the folder can be written by everybody', () => chmod(directory, 0o777)],
    ['the folder can be written by everybody, with a sticky bit', () => chmod(directory, 0o1777)],
  ])('is refused where %s, and --config still names it', (_, weaken) => isRefused(weaken))

  it.runIf(isRoot)('is refused where the file can be written by a group, and --config still names it', () =>
    isRefused(async (file) => {
      await chown(file, 0, 54_321)
      await chmod(file, 0o664)
    }),
  )

  it.runIf(isRoot)('is refused where file or folder belong to somebody else', async () => {
    const file = await plant(directory)
    await chown(file, 65_534, 65_534)
    expect((await paddock(directory, exporting)).err).toMatch(/^CONFIG_UNTRUSTED: .*belongs to user 65534/)
    await chown(file, 0, 0)
    await chown(directory, 65_534, 65_534)
    expect((await paddock(directory, exporting)).err).toMatch(/^CONFIG_UNTRUSTED: .*belongs to user 65534/)
    expect(existsSync(ran)).toBe(false)
  })

  it('is judged by what a link leads to', async () => {
    const elsewhere = join(directory, 'elsewhere')
    const file = await plant(elsewhere)
    await chmod(elsewhere, 0o777)
    const home = join(directory, 'home')
    await mkdir(home)
    await symlink(file, join(home, 'paddock.config.ts'))
    expect((await paddock(home, exporting)).err).toMatch(/^CONFIG_UNTRUSTED/)
    expect(existsSync(ran)).toBe(false)
  })
})

describe('what lies in a data directory or a task folder', () => {
  const places = {
    'a data directory': async (folder: string) => (await openStore(folder)).close(),
    'a task folder': async (folder: string) => {
      await mkdir(folder)
      await writeFile(join(folder, 'task.toml'), '')
    },
  }
  const names = Object.entries(places)

  it.each(names)('is no configuration: %s', async (_, make) => {
    const folder = join(directory, 'foreign')
    await make(folder)
    for (const place of [folder, join(folder, 'below')]) {
      await plant(place)
      expect((await paddock(place, exporting)).err).toMatch(/^CONFIG_UNTRUSTED: .*data directory or a task folder/)
    }
    expect(existsSync(ran)).toBe(false)
  })

  it.each(names)('is no plugin, whoever names it: %s', async (_, make) => {
    const folder = join(directory, 'foreign')
    await make(folder)
    const plugin = await plant(folder, 'plugin.ts')
    const through = async (config: object, args: readonly string[]) => {
      const file = join(await mkdtemp(join(directory, 'own-')), 'own.config.ts')
      await writeFile(file, `export default ${JSON.stringify(config)}`)
      const { err } = await paddock(directory, [...args, '--config', file])
      expect(err).toMatch(/CONFIG_UNTRUSTED: .*data directory or a task folder/)
    }
    await through({ exporters: [plugin] }, exporting)
    await through({ environments: [plugin] }, ['validate', directory])
    await through({ harnesses: [plugin] }, ['run', directory, '--harness', 'x', '--env', 'terminal'])
    await through({}, ['validate', directory, '--env', plugin])
    expect(existsSync(ran)).toBe(false)
  })
})
