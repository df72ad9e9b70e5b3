/** `examples/train/curriculum.py` against a real `paddock serve` and the scripted engine: pass rates move, and what is trained follows. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/here.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { Trainer } from './trainer.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
let directory: string
let token: string
let serving: Serving
beforeAll(async () => {
  directory = tempDir()
  const data = join(directory, 'data')
  serving = await serve(data)
  token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
})
afterAll(async () => {
  await serving.stop()
})

interface Line {
  readonly name: string
  readonly passed: number
  readonly attempts: number
  readonly pass_rate: number
  readonly version: { readonly version: number }
}

it('trains what is half learned, from easy to hard, as its pass rates say', async () => {
  const env = {
    ...process.env,
    PYTHONPATH: at('clients/python/src'),
    PYTHONDONTWRITEBYTECODE: '1',
    PADDOCK_CONTROL_URL: serving.ready.control,
    PADDOCK_CONTROL_TOKEN: token,
  }
  const { stdout } = await promisify(execFile)('python3', [at('examples/train/curriculum.py')], { env })
  const steps = [...stdout.matchAll(/^step \d+: (\w+), (\d) of 4 passed, level (\d+)$/gm)].map(([, name, passes]) => ({
    name,
    learned: passes !== '0' && passes !== '4',
  }))
  expect(steps).toHaveLength(40)
  // What was learned from, in order: each task for as long as it could be.
  const learned = steps.filter((step) => step.learned).map(({ name }) => name)
  expect(learned.slice(0, 7)).toEqual(['easy', 'easy', 'easy', 'middle', 'middle', 'middle', 'hard'])

  const trainer = new Trainer(serving, token)
  const lines = async (query: string) =>
    (await trainer.ask<{ tasks: readonly Line[] }>('GET', `/tasks?run=curriculum&${query}`)).tasks
  const rate = async (versions: string) =>
    Object.fromEntries((await lines(`versions=${versions}`)).map(({ name, pass_rate: rate_ }) => [name, rate_]))
  const [before, after] = [await rate('..3'), await rate('20..')]
  expect(before['easy']).toBeLessThan(1)
  expect(after['easy'] ?? 1).toBe(1)
  expect(after['hard']).toBeGreaterThan(before['hard'] ?? 0)
  const all = await lines('')
  expect(all.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(160)
})
