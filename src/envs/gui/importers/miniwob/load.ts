import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { z } from 'zod'
import { gui, makeTask, sha256, type Task } from '../../../../kits/environment.ts'
import { type MiniwobData, miniwobSetSchema } from './data.ts'

type Set = z.infer<typeof miniwobSetSchema>

const fix =
  'A set is {"format": "miniwob", "directory": "<checkout>"}, with pages, seeds, seconds, score, oracles where wanted.'

/**
 * The pages of a checkout of miniwob-plusplus (its layout at 3f461ff): the checkout, its folder `html`, one page of it, or
 * the JSON file of a set. Null for what is none of these.
 */
export async function readMiniwob({ path, kind, json }: gui.Place): Promise<readonly Task[] | null> {
  if (kind === 'directory') {
    const html = await htmlBelow(path)
    return html === null ? null : tasksOf(html, setOf({ directory: path }, path), path)
  }
  if (path.endsWith('.html')) {
    const html = await htmlAbove(path)
    if (html === null) return null
    const page = nameOf(relative(html, path).split(sep).join('/'))
    return tasksOf(html, setOf({ directory: html, pages: [page] }, path), path)
  }
  if (typeof json !== 'object' || json === null || !('format' in json) || json.format !== 'miniwob') return null
  const set = setOf(json, path)
  const html = await htmlBelow(resolve(dirname(path), set.directory))
  if (html !== null) return tasksOf(html, set, path)
  throw gui.invalid(
    path,
    'directory',
    `${set.directory} is no checkout of miniwob-plusplus: it has no html/core/core.js`,
    'Name the folder that holds miniwob/html, or html itself. Paths start at the file.',
  )
}

function setOf(json: object, file: string): Set {
  return gui.fitted(miniwobSetSchema, { format: 'miniwob', ...json }, file, fix)
}

async function tasksOf(html: string, set: Set, file: string): Promise<readonly Task[]> {
  const pages = await pagesBelow(html)
  const chosen = set.pages ?? pages.map(nameOf)
  const unknown = chosen.find((name) => !pages.includes(pageOf(name)))
  if (unknown !== undefined) {
    const near = pages.map(nameOf).filter((name) => name.startsWith(unknown.slice(0, 4)))
    throw gui.invalid(
      file,
      'pages',
      `there is no page ${unknown}`,
      `Use names such as ${near[0] ?? nameOf(pages[0] ?? '')}.`,
    )
  }
  const core = await readFile(join(html, 'core', 'core.js'), 'utf8')
  const tasks = await Promise.all(
    chosen.flatMap((name) => set.seeds.map((seed) => taskOf({ html, core, set, page: pageOf(name), seed }))),
  )
  gui.requireKnown(
    file,
    set.oracles,
    tasks.map(({ name }) => name),
  )
  return tasks.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

interface One {
  readonly html: string
  readonly core: string
  readonly set: Set
  readonly page: string
  readonly seed: number
}

async function taskOf({ html, core, set, page, seed }: One): Promise<Task> {
  const name = `${nameOf(page).replaceAll('/', '-').toLowerCase()}-${seed}`
  const { image, schema, maxActions, seconds, score, threshold, split, oracles } = set
  const data: MiniwobData = {
    format: 'miniwob',
    page,
    seed,
    seconds,
    score,
    threshold,
    // A page of the field is 160 by 210; those of the flights are whole web sites.
    screen: set.screen ?? (page.startsWith('flight/') ? { width: 1000, height: 800 } : { width: 332, height: 240 }),
    tier: 'browser',
    image,
    schema,
    maxActions,
    oracle: oracles[name] ?? null,
    sha256: sha256(`${core}\0${await readFile(join(html, page), 'utf8')}`),
  }
  const instruction =
    `The page ${nameOf(page)} says at its top, in the yellow box, what is to be done. Do it. ` +
    'The page ends its episode by itself, which it shows by the word START; then say that you are done.'
  return makeTask({ name, environment: 'gui', instruction, split, data, source: html })
}

/** Every page of a set, below `html`: those of `miniwob`, and the wrappers of `flight`. */
async function pagesBelow(html: string): Promise<readonly string[]> {
  const own = (await readdir(join(html, 'miniwob')).catch(() => [])).filter((name) => name.endsWith('.html'))
  const flights = await readdir(join(html, 'flight')).catch(() => [])
  const wrapped = await Promise.all(
    flights.map(async (name) => ((await isFile(join(html, 'flight', name, 'wrapper.html'))) ? [name] : [])),
  )
  return [
    ...own.toSorted().map((name) => `miniwob/${name}`),
    ...wrapped.flat().map((name) => `flight/${name}/wrapper.html`),
  ]
}

/** `miniwob/click-test.html` is `click-test`, `flight/AA/wrapper.html` is `flight/AA`. */
function nameOf(page: string): string {
  return page.startsWith('flight/') ? dirname(page) : page.replace(/^miniwob\//, '').replace(/\.html$/, '')
}

function pageOf(name: string): string {
  return name.startsWith('flight/') ? `${name}/wrapper.html` : `miniwob/${name}.html`
}

async function htmlBelow(path: string): Promise<string | null> {
  for (const candidate of [path, join(path, 'html'), join(path, 'miniwob', 'html')]) {
    if (await isFile(join(candidate, 'core', 'core.js'))) return candidate
  }
  return null
}

async function htmlAbove(page: string): Promise<string | null> {
  for (const candidate of [dirname(dirname(page)), dirname(dirname(dirname(page)))]) {
    if (await isFile(join(candidate, 'core', 'core.js'))) return candidate
  }
  return null
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true
}
