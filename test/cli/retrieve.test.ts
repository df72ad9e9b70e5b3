/** `paddock retrieve`: a corpus behind a URL, until Ctrl-C. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'
import { launcher } from './paddock.ts'

const examples = fileURLToPath(new URL('../../examples/tasks/search', import.meta.url))

const directory = tempDir()

it('serves the example corpus and ends with Ctrl-C', async () => {
  const args = ['retrieve', examples, '--port', '0', '--topk', '2', '--json', '--data', directory]
  const child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const ready = JSON.parse(line) as { readonly url: string; readonly passages: number }
  expect(ready.passages).toBe(4000)
  const body = JSON.stringify({ queries: ['Mendvald Printing House founded by'], return_scores: true })
  const response = await fetch(ready.url, { method: 'POST', body })
  const { result } = (await response.json()) as { result: [[{ document: { title: string } }, unknown]] }
  expect(result[0]).toHaveLength(2)
  expect(result[0][0].document.title).toBe('Mendvald Printing House')
  child.kill('SIGINT')
  expect(await once(child, 'close')).toEqual([0, null])
})

it('names a corpus that is not there', async () => {
  const ended = await paddock(['retrieve', join(directory, 'nowhere'), '--data', directory])
  expect(ended).toMatchObject({ code: 2, err: expect.stringMatching(/TASK_INVALID: .*search\.toml.* Fix: /) })
})
