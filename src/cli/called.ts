import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, isAbsolute, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageDirectory } from './version.ts'

/** What a process knows of the line that started it. */
export interface Start {
  /** `process.argv[1]`. */
  readonly program: string
  /** `$0` of the launcher `./paddock`; null: something else started the program. */
  readonly launcher: string | null
  readonly cwd: string
  /** `PATH`. */
  readonly path: string
  /** What `npx --package` was given (npm sets `npm_config_package` for what it starts). */
  readonly packages: readonly string[]
}

/** The words that start this program again from the same shell: `./paddock`, `npx paddock`, `paddock` or a path. */
export function calledAs({ program, launcher, cwd, path, packages }: Start): string {
  const file = launcher !== null && /\/cli\/main\.[jt]s$/.test(program) ? launcher : program
  const [, project] = /^(.*?)\/node_modules\//.exec(file) ?? []
  if (project !== undefined && /\/_npx\/[^/]+$/.test(project)) {
    return packages.length === 0
      ? 'npx paddock-rl'
      : `npx ${packages.map((name) => `--package ${name}`).join(' ')} paddock`
  }
  if (project !== undefined && `${cwd}/`.startsWith(`${project}/`)) return 'npx paddock'
  if (path.split(delimiter).some((folder) => isSame(join(folder, 'paddock'), file))) return 'paddock'
  const near = isAbsolute(file) ? relative(cwd, file) : file
  const shown = near.startsWith(`..${sep}..`) ? file : near.includes(sep) ? near : `.${sep}${near}`
  return file.endsWith('.ts') || file.endsWith('.js') ? `node ${shown}` : shown
}

function isSame(candidate: string, file: string): boolean {
  try {
    accessSync(candidate, constants.X_OK)
    return realpathSync(candidate) === realpathSync(file)
  } catch {
    return false
  }
}

/** Of this process. */
export function calledHere(): string {
  const { PADDOCK_CALLED, PATH, npm_config_package } = process.env
  return calledAs({
    program: process.argv[1] ?? '',
    launcher: PADDOCK_CALLED ?? null,
    cwd: process.cwd(),
    path: PATH ?? '',
    packages: npm_config_package?.split(/\s+/).filter((name) => name !== '') ?? [],
  })
}

/** Where a page is that a text names by its path in the package: from here, or from the root of the file system. */
function placeOfPage(path: string): string {
  const file = fileURLToPath(new URL(path, packageDirectory))
  const near = relative(process.cwd(), file)
  return near.startsWith('..') ? file : near
}

/**
 * One of Paddock's texts with its commands as they can be typed, and its pages where they are. Texts name the program `paddock`; what is a command stands in backticks, or
 * behind `$` in an example of a help text.
 */
export function asTyped(text: string, called: string): string {
  return text
    .replaceAll(/`[^`\n]+`|^ *\$ .*$|^Usage: .*$/gm, (command) =>
      command.replaceAll(/(?<![\w./@-])paddock(?= [a-z<[-])/g, () => called),
    )
    .replaceAll(/(?<![\w./-])docs\/[\w./-]+\.md/g, placeOfPage)
}
