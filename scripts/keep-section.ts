/** Tables of long runs, each a section of a Markdown file that the next run of it replaces. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** Replaces the section of this title, or adds it; others stay. Below the title stand the day and the commit. */
export function keepSection(file: string, title: string, text: string): void {
  const heading = `## ${title}\n`
  const before = existsSync(file) ? readFileSync(file, 'utf8') : head
  const sections = before.split(/^(?=## )/m).map((section) => `${section.trimEnd()}\n`)
  const section = `${heading}\n${new Date().toISOString().slice(0, 10)}, commit ${commit()}.\n\n${text.trimEnd()}\n`
  const at = sections.findIndex((one) => one.startsWith(heading))
  if (at === -1) sections.push(section)
  else sections[at] = section
  writeFileSync(file, sections.join('\n'))
}

const head = '# Last long runs\n\nWritten by `npm run torture:long` and `npm run world:long`, each when it ends.\n'

function commit(): string {
  const found = spawnSync('git', ['describe', '--always', '--dirty', '--exclude=*'], { encoding: 'utf8' })
  return found.status === 0 ? found.stdout.trim() : 'unknown'
}
