import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { environmentRegistry } from '../../builtin/index.ts'
import { generatedPlace, placeText } from '../../core/index.ts'
import type { Environment, EnvironmentRegistry } from '../index.ts'
import { searchDataSchema } from '../search/data.ts'
import { sqlDataSchema } from '../sql/data.ts'
import { terminalDataSchema } from '../terminal/data.ts'
import { generatedLine } from './index.ts'

const receipts = join(import.meta.dirname, '../../../examples/environments/receipts/environment.ts')
let directory: string
let registry: EnvironmentRegistry
beforeAll(async () => {
  directory = tempDir()
  registry = await environmentRegistry({ data: directory, plugins: [receipts] })
})

const names = ['break-ins', 'receipts', 'records', 'repairs', 'worlds']
const withGenerators = (): readonly Environment[] => registry.names.map((name) => registry.get(name))
/** A generator and whose it is. */
const found = (name: string) => {
  const environment = withGenerators().find(({ generators }) => generators.some((one) => one.name === name))
  const generator = environment?.generators.find((one) => one.name === name)
  if (environment === undefined || generator === undefined) throw new Error(`there is no generator ${name}`)
  return { environment, generator }
}

describe('generators', () => {
  it('are those of the environments that are looked at here', () => {
    const all = withGenerators().flatMap(({ generators }) => generators.map(({ name }) => name))
    expect(all.toSorted()).toEqual(names)
  })

  it.each(names)('of %s give the same bytes for a seed, others for another, whole and of the schema', async (name) => {
    const { environment, generator } = found(name)
    // Within few worlds: each has an image or an index of its own.
    const seed = fc.integer({ min: 0, max: 149 })
    await fc.assert(
      fc.asyncProperty(seed, seed, fc.integer({ min: 1, max: generator.levels }), async (a, b, level) => {
        const task = await generator.generate({ seed: a, level })
        expect(JSON.stringify(await generator.generate({ seed: a, level }))).toBe(JSON.stringify(task))
        expect(environment.task.safeParse(task.data).success).toBe(true)
        const other = await generator.generate({ seed: b, level })
        expect(other.digest === task.digest).toBe(a === b)
        expect(task.source).toBe(`${generator.name}:${a}:${level}`)
      }),
      { numRuns: 60 },
    )
  })

  it('give another task at each level, which asks more', async () => {
    const steps = (data: unknown): number =>
      z
        .object({ candidates: z.tuple([z.object({ steps: z.array(z.unknown()) })]) })
        .parse(JSON.parse(terminalDataSchema.parse(data).files?.find(({ path }) => path === 'script.json')?.text ?? ''))
        .candidates[0].steps.length
    const size: Readonly<Record<string, (data: unknown) => number>> = {
      // What has to be done, each step by the shell.
      'break-ins': steps,
      repairs: steps,
      receipts: (data) => z.object({ receipts: z.array(z.unknown()) }).parse(data).receipts.length,
      worlds: (data) => searchDataSchema.parse(data).evidence.length,
      // What is read and how it is put together.
      records: (data) =>
        [...(sqlDataSchema.parse(data).golds[0] ?? '').matchAll(/ (FROM|JOIN|GROUP|HAVING|EXISTS|OVER)/g)].length,
    }
    for (const name of names) {
      const { generator } = found(name)
      for (let seed = 0; seed < 50; seed += 1) {
        let before = 0
        for (let level = 1; level <= generator.levels; level += 1) {
          const now = size[name]?.((await generator.generate({ seed, level })).data) ?? 0
          expect(now, `${name} seed ${seed} level ${level}`).toBeGreaterThan(before)
          before = now
        }
      }
    }
  })
})

describe('places of generated tasks', () => {
  it('say what they are again', () => {
    const range = fc
      .tuple(fc.nat(9_999), fc.nat(9))
      .map(([from, more]): readonly [number, number] => [from, from + more])
    fc.assert(
      fc.property(fc.constantFrom('records', 'a-1'), range, range, (name, seeds, levels) => {
        expect(generatedPlace(placeText({ name, seeds, levels }))).toEqual({ name, seeds, levels })
      }),
    )
  })

  it('are no paths', () => {
    for (const path of ['tasks', './records:1:2', '/a:1:2', 'records:1', 'records:x:1', 'C:1:2\\x']) {
      expect(generatedPlace(path)).toBeNull()
    }
    expect(() => generatedPlace('records:5..1:1')).toThrow(/ends before it begins/)
    expect(() => generatedPlace('records:0..999999:1')).toThrow(/100000 are the most/)
  })

  it('are loaded level by level, and refused by name where there is no such task', async () => {
    const sql = registry.get('sql')
    const tasks = await sql.load('records:3..4:1..2')
    expect(tasks.map(({ name }) => name)).toEqual(['records-3-l1', 'records-4-l1', 'records-3-l2', 'records-4-l2'])
    await expect(sql.load('worlds:0:1')).rejects.toMatchObject({ code: 'TASK_INVALID', fix: /It has records/ })
    await expect(registry.get('terminal').load('records:0:1')).rejects.toMatchObject({ code: 'TASK_INVALID' })
    await expect(sql.load('records:0:6')).rejects.toMatchObject({ code: 'TASK_INVALID', fix: /1 to 5/ })
  })
})

describe('files of generated tasks', () => {
  it('give back what was generated, under the same digests', async () => {
    for (const name of names) {
      const { environment } = found(name)
      const tasks = await environment.load(`${name}:0..4:1..2`)
      const file = join(directory, `${name}.jsonl`)
      await writeFile(file, tasks.map(generatedLine).join(''))
      expect(await environment.load(file)).toEqual(tasks)
    }
  })

  it('are refused line by line where somebody changed them', async () => {
    const sql = registry.get('sql')
    const file = join(directory, 'changed.jsonl')
    const lines = (await sql.load('records:0..1:1')).map(generatedLine)
    await writeFile(file, lines.join('').replace('How many', 'How few'))
    await expect(sql.load(file)).rejects.toMatchObject({
      code: 'TASK_INVALID',
      message: /changed.jsonl:1: it was changed/,
    })
    const refused: string[] = []
    expect(await sql.load(file, { onRefused: (name) => refused.push(name) })).toHaveLength(1)
    expect(refused).toEqual(['records-0-l1'])
    await writeFile(file, `${lines.join('')}${lines[0]}`)
    await expect(sql.load(file)).rejects.toMatchObject({ message: /two tasks records-0-l1/ })
    await expect(registry.get('search').load(file)).rejects.toMatchObject({ fix: 'Give --env sql.' })
    expect(await readFile(file, 'utf8')).toMatch(/^\{"generated":"records:0:1"/)
  })
})
