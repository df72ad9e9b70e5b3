/** A command that is shown can be typed as it is shown: `npx paddock` is somebody else's package where ours is not installed. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const files = execFileSync(
  'git',
  ['ls-files', '*.md', 'src', 'web/src', 'engine/src', 'examples', 'scripts', 'bin', 'deploy', 'clients', 'quickstart'],
  { cwd: root, encoding: 'utf8' },
)
  .trim()
  .split('\n')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const lines = (path: string, wrong: RegExp): readonly string[] =>
  read(path)
    .split('\n')
    .flatMap((line, at) => (wrong.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : []))

it('npx paddock is shown only where a page has just installed the packed package', () => {
  const found = files.flatMap((path) => {
    const wrong = lines(path, /\bnpx (?:--yes |-y )?paddock(?![\w-])/)
    return wrong.length > 0 && !/npm install \S*paddock-rl-[\d.]+\.tgz|packed package installed/.test(read(path))
      ? wrong
      : []
  })
  // It is how the program tells a person who called it so.
  expect(found.filter((line) => !line.startsWith('src/cli/called.ts:'))).toEqual([])
  expect(files.filter((path) => read(path).includes('npx paddock')).length).toBeGreaterThan(2)
})

it('nothing installs the package from npm, where no version is yet', () => {
  expect(files.flatMap((path) => lines(path, /\bnpm (?:install|i|add) (?:-\S+ |--\S+ )*paddock-rl\b(?!-)/))).toEqual([])
})

it('guides and README say ./paddock, which is what a clone has', () => {
  const pages = files.filter((path) => path === 'README.md' || path.startsWith('docs/guides/'))
  expect(pages.length).toBeGreaterThan(20)
  expect(pages.flatMap((path) => lines(path, /^\s*(?:\$ )?paddock [a-z].*$/))).toEqual([])
})

/** `called.ts` puts what was typed before a command that stands in backticks, or behind `$` in the example of a help text. */
it('a command in a message of the program stands where it is made typeable', () => {
  const commands = [...read('src/cli/program.ts').matchAll(/^ {2}(\w+): async/gm)].map(([, name]) => name)
  expect(commands.length).toBeGreaterThan(30)
  const bare = new RegExp(`(?<![\\w./@>\`-])paddock (?:${commands.join('|')})\\b`)
  const found = files
    .filter((path) => /^(src|web\/src)\/.*\.tsx?$/.test(path) && !/\.(test|fixture)\.tsx?$/.test(path))
    .flatMap((path) => lines(path, bare))
    .filter(
      (line) =>
        !/^\S+ (?:\*|\/\/|\/\*)|\s\/\/ |\\?`[^`]*paddock [^`]*\\?`|\$ (?:[A-Z_]+=\S+ )?paddock |&& paddock /.test(line),
    )
    .filter((line) => !/--format paddock takes|complete -c paddock/.test(line))
  expect(found).toEqual([])
})
