import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import { atifFormat, readAtifFile } from './atif.ts'
import { chatFormat } from './chat.ts'
import type { ImportedTrajectory, ImportFormat } from './contract.ts'
import { harborTrajectory, harborTrial, isTrialResult } from './harbor.ts'
import { invalid } from './invalid.ts'
import { elementsOf, isAnswer } from './raw.ts'
import { sharegptFormat } from './sharegpt.ts'

const textFormats: readonly ImportFormat[] = [atifFormat, chatFormat, sharegptFormat]

/** What can be imported, by name. */
export const importFormats: readonly { readonly name: string; readonly summary: string }[] = [
  ...textFormats.map(({ name, summary }) => ({ name, summary })),
  { name: 'harbor', summary: 'folders of jobs or trials of Harbor: result.json beside agent/trajectory.json' },
]

/**
 * The trajectories of files and folders, in order, one in memory at a time (a file that is one JSON array: all of its text). `without` gets
 * the places that have a result and no trajectory. Throws `IMPORT_INVALID` with the place.
 */
export async function* readTrajectories(
  format: string,
  paths: readonly string[],
  without: string[] = [],
): AsyncGenerator<ImportedTrajectory> {
  const places = new Set<string>()
  const files = new Set<string>()
  for (const path of paths) {
    const found = format === 'harbor' ? trials(path, files, without) : ofFile(textFormat(format), path, files)
    for await (const one of found) {
      if (places.has(one.place)) throw invalid(one.place, 'two of the given files have this name')
      places.add(one.place)
      for (const [nth, { messages }] of one.threads.entries()) {
        if (messages.some((text) => isAnswer(text))) continue
        throw invalid(one.place, `${nth === 0 ? 'it' : `thread ${nth + 1}`} has no answer of an assistant`)
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

async function* ofFile(format: ImportFormat, path: string, files: Set<string>): AsyncGenerator<ImportedTrajectory> {
  const name = basename(path)
  if (await isFolder(path)) throw invalid(path, `it is a folder; ${format.name} takes files`)
  if (!/\.(jsonl|ndjson)$/.test(path)) {
    yield* ofJson(format, path, files)
    return
  }
  let line = 0
  for await (const text of linesOf(path)) {
    line += 1
    if (text.trim() !== '') yield readAs(format, text, `${name}#${line}`)
  }
}

/** A file that is one JSON value: a trajectory, or an array of them. */
async function* ofJson(format: ImportFormat, path: string, files: Set<string>): AsyncGenerator<ImportedTrajectory> {
  const name = basename(path)
  const text = await readFile(path, 'utf8')
  if (text.trimStart().startsWith('[')) {
    for (const [nth, element] of arrayOf(text, name).entries()) yield readAs(format, element, `${name}#${nth + 1}`)
  } else if (format === atifFormat) {
    yield await readAtifFile(path, name, files).catch((error: unknown) => {
      throw likely(error, format, text)
    })
  } else yield readAs(format, text, name)
}

function arrayOf(text: string, name: string): readonly string[] {
  try {
    return elementsOf(text)
  } catch (error) {
    throw invalid(name, `it is no JSON (${error instanceof Error ? error.message : String(error)})`)
  }
}

/** As the format reads it. Throws `IMPORT_INVALID`, which names the format that the text looks like if that differs. */
function readAs(format: ImportFormat, text: string, place: string): ImportedTrajectory {
  try {
    return format.read(text, place)
  } catch (error) {
    throw likely(error, format, text)
  }
}

/** The error, with the format that a text looks like if that differs. */
function likely(error: unknown, format: ImportFormat, text: string): unknown {
  const like = likeOf(text)
  if (!isPaddockError(error) || like === undefined || like === format) return error
  return new PaddockError(error.code, error.message, {
    fix: `It looks like ${like.name}: use \`--format ${like.name}\`. Nothing of it was imported.`,
    data: { ...error.data, like: like.name },
  })
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

async function* trials(path: string, read: Set<string>, without: string[]): AsyncGenerator<ImportedTrajectory> {
  if (!(await isFolder(path))) throw invalid(path, 'it is a file; harbor takes the folder of a job or a trial')
  // With types it follows no links, which may lead round (Node 24).
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const files = entries.map(({ parentPath, name }) => relative(path, join(parentPath, name)))
  const found = files.filter((file) => file === harborTrajectory || file.endsWith(`/${harborTrajectory}`)).toSorted()
  if (found.length === 0) throw invalid(path, `there is no ${harborTrajectory} below it`)
  const placeOf = (folder: string): string => join(basename(path), relative('.', folder))
  for (const file of found) yield harborTrial(join(path, file), placeOf(file.slice(0, -harborTrajectory.length)), read)
  for (const file of files.filter((one) => basename(one) === 'result.json').toSorted()) {
    const folder = dirname(file)
    if (found.includes(join(folder, harborTrajectory)) || !(await isTrialResult(join(path, file)))) continue
    without.push(placeOf(folder))
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
