import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import { atifFormat } from './atif.ts'
import { chatFormat } from './chat.ts'
import type { ImportedTrajectory, ImportFormat } from './contract.ts'
import { harborTrajectory, harborTrial } from './harbor.ts'
import { invalid } from './invalid.ts'
import { elementsOf } from './raw.ts'
import { sharegptFormat } from './sharegpt.ts'

const textFormats: readonly ImportFormat[] = [atifFormat, chatFormat, sharegptFormat]

/** What can be imported, by name. */
export const importFormats: readonly { readonly name: string; readonly summary: string }[] = [
  ...textFormats.map(({ name, summary }) => ({ name, summary })),
  { name: 'harbor', summary: 'folders of jobs or trials of Harbor: result.json beside agent/trajectory.json' },
]

/**
 * The trajectories of files and folders, in order, one in memory at a time (a file that is one JSON array: all of its text). Throws
 * `IMPORT_INVALID` with the place.
 */
export async function* readTrajectories(format: string, paths: readonly string[]): AsyncGenerator<ImportedTrajectory> {
  const places = new Set<string>()
  for (const path of paths) {
    for await (const one of format === 'harbor' ? trials(path) : ofFile(textFormat(format), path)) {
      if (places.has(one.place)) throw invalid(one.place, 'two of the given files have this name')
      places.add(one.place)
      for (const [nth, { messages }] of one.threads.entries()) {
        if (messages.some((text) => isAnswer(text))) continue
        throw invalid(one.place, `${nth === 0 ? 'it' : `sub-agent ${nth}`} has no answer of an assistant`)
      }
      yield one
    }
  }
}

function textFormat(name: string): ImportFormat {
  const format = textFormats.find((one) => one.name === name)
  if (format !== undefined) return format
  throw new PaddockError('USAGE', `There is no import format ${JSON.stringify(name)}`, {
    fix: `Take one of ${importFormats.map((one) => one.name).join(', ')}.`,
  })
}

/** Whether a message's JSON text is one of the assistant. */
export function isAnswer(message: string): boolean {
  const { role } = JSON.parse(message) as { readonly role?: unknown }
  return role === 'assistant'
}

async function* ofFile(format: ImportFormat, path: string): AsyncGenerator<ImportedTrajectory> {
  const name = basename(path)
  if (await isFolder(path)) throw invalid(path, `it is a folder; ${format.name} takes files`)
  if (!/\.(jsonl|ndjson)$/.test(path)) {
    const text = await readFile(path, 'utf8')
    if (!text.trimStart().startsWith('[')) {
      yield readAs(format, text, name)
      return
    }
    let elements: readonly string[]
    try {
      elements = elementsOf(text)
    } catch (error) {
      throw invalid(name, `it is no JSON (${error instanceof Error ? error.message : String(error)})`)
    }
    for (const [nth, element] of elements.entries()) yield readAs(format, element, `${name}#${nth + 1}`)
    return
  }
  let line = 0
  for await (const text of linesOf(path)) {
    line += 1
    if (text.trim() !== '') yield readAs(format, text, `${name}#${line}`)
  }
}

/** As the format reads it. Throws `IMPORT_INVALID`, which names the format that the text looks like if that differs. */
function readAs(format: ImportFormat, text: string, place: string): ImportedTrajectory {
  try {
    return format.read(text, place)
  } catch (error) {
    const like = likeOf(text)
    if (!isPaddockError(error) || like === undefined || like === format) throw error
    throw new PaddockError(error.code, error.message, {
      fix: `It looks like ${like.name}: use \`--format ${like.name}\`. Nothing of it was imported.`,
      data: { ...error.data, like: like.name },
    })
  }
}

/** The only format whose field a value has. */
function likeOf(text: string): ImportFormat | undefined {
  try {
    const value = new Object(JSON.parse(text)) as object
    const found = textFormats.filter(({ mark }) => mark in value)
    return found.length === 1 ? found[0] : undefined
  } catch {
    return undefined
  }
}

/** Lines end at a line feed and nowhere else: `node:readline` also ends them at U+2028, which may stand inside of JSON. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8' })) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  yield rest
}

async function* trials(path: string): AsyncGenerator<ImportedTrajectory> {
  if (!(await isFolder(path))) throw invalid(path, 'it is a file; harbor takes the folder of a job or a trial')
  const files = await readdir(path, { recursive: true })
  const found = files.filter((file) => file === harborTrajectory || file.endsWith(`/${harborTrajectory}`)).toSorted()
  if (found.length === 0) throw invalid(path, `there is no ${harborTrajectory} below it`)
  for (const file of found) {
    const trial = join(basename(path), relative('.', file.slice(0, -harborTrajectory.length)))
    yield harborTrial(join(path, file), trial)
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    throw new PaddockError('USAGE', `${path} does not exist`, {
      fix: 'Correct the path of the file or folder to import.',
    })
  }
}
