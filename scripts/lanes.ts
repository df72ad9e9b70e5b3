/** The lanes of tests: folders of `test/` with a `lane.json`. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Lane {
  readonly name: string
  /** Minutes after which no further file starts. */
  readonly limitMinutes: number
  /** Test files by their paths from the root of the repository, the most important first. */
  readonly files: readonly string[]
  /** Files that only `--long` runs. */
  readonly long: readonly string[]
  /** How many vitests run beside each other. */
  readonly atOnce: number
  /** Files that run beside no other. */
  readonly alone: readonly string[]
  /** How many files one vitest takes. */
  readonly together: number
  /** The configuration of its vitests. */
  readonly config: string
}

/** A `lane.json` or an option that cannot be used: its message says where and what to do. */
export class Misuse extends Error {}

const keys = ['limitMinutes', 'from', 'files', 'long', 'atOnce', 'alone', 'together']

/** The names of all lanes of a repository, by the alphabet. */
export function laneNames(root = '.'): string[] {
  const folders = readdirSync(join(root, 'test'))
  return folders.filter((name) => existsSync(join(root, 'test', name, 'lane.json'))).toSorted()
}

/**
 * The lane of `test/<name>`. Its list names files of that folder, each exactly once; with `"from": "."` it names files beside the
 * sources instead, by paths or globs from the root of the repository.
 */
export function laneOf(name: string, root = '.'): Lane {
  const folder = join('test', name)
  const path = join(folder, 'lane.json')
  if (!existsSync(join(root, path))) {
    throw new Misuse(`There is no lane ${name}. Fix: write ${path} with limitMinutes and files.`)
  }
  const written: unknown = JSON.parse(readFileSync(join(root, path), 'utf8'))
  if (typeof written !== 'object' || written === null) throw new Misuse(`${path} is not an object.`)
  const {
    limitMinutes,
    from,
    files,
    long = [],
    atOnce = 1,
    alone = [],
    together = 1,
  } = written as Record<string, unknown>
  const unknown = Object.keys(written).find((key) => !keys.includes(key))
  if (unknown !== undefined) {
    throw new Misuse(`${path} has an unknown key ${unknown}. Fix: the keys are ${keys.join(', ')}.`)
  }
  if (typeof limitMinutes !== 'number' || !(limitMinutes > 0)) {
    throw new Misuse(`${path}: limitMinutes is not a number above 0.`)
  }
  if (!isCount(atOnce)) throw new Misuse(`${path}: atOnce is not a whole number from 1.`)
  if (!isCount(together)) throw new Misuse(`${path}: together is not a whole number from 1.`)
  if (from !== undefined && from !== '.') {
    throw new Misuse(`${path}: from is "." (the root of the repository) or left out (${folder}).`)
  }
  if (!isListOfNames(files) || !isListOfNames(long) || !isListOfNames(alone)) {
    throw new Misuse(`${path}: files, long and alone are lists of names.`)
  }
  const isInside = from === undefined
  const place = isInside ? folder : '.'
  const found = isInside
    ? readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter(isTest)
    : undefined
  const resolved = (names: readonly string[]): string[] =>
    names.flatMap((one) => {
      const matches = isInside
        ? (found ?? []).filter((file) => file === one)
        : globSync(one, { cwd: root, exclude: ['**/node_modules'] }).filter(isTest)
      if (matches.length === 0) throw new Misuse(`${path} names ${one}, which does not exist.`)
      return matches.map((file) => join(place, file)).toSorted()
    })
  const [first, second] = [resolved(files), resolved(long)]
  const named = [...first, ...second]
  for (const [at, file] of named.entries()) {
    if (named.indexOf(file) !== at)
      throw new Misuse(`${path} names ${isInside ? file.slice(folder.length + 1) : file} twice.`)
  }
  for (const file of alone) {
    if (!named.includes(join(place, file))) {
      throw new Misuse(`${path}: alone names ${file}, which is in neither files nor long.`)
    }
  }
  for (const file of found ?? []) {
    if (!named.includes(join(place, file))) {
      throw new Misuse(`${join(folder, file)} is not in ${path}. Fix: put it where its importance is.`)
    }
  }
  return {
    name,
    limitMinutes,
    files: first,
    long: second,
    atOnce,
    alone: alone.map((file) => join(place, file)),
    together,
    config: isInside ? 'vitest.lane.config.ts' : 'vitest.config.ts',
  }
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts')
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1
}

function isListOfNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}
