/** A published environment by the commands of its guide. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** What the guide runs, and where: `rows` is what its commands call the folder of the export. */
export interface Guided {
  readonly guide: string
  readonly place: string
  readonly python: string
  readonly rows: string
  readonly directory: string
}

/** Runs the guide's two commands, its code being that of the example, and gives the rewards of the exported rows. */
export async function guidedRewards({ guide, place, python, rows, directory }: Guided): Promise<readonly unknown[]> {
  const said = await readFile(join(root, 'docs/guides', guide), 'utf8')
  const example = await readFile(join(place, 'environment.ts'), 'utf8')
  const code = [...said.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
  expect(code.map((block) => example.includes(block))).toEqual([true])
  // What installs is `scripts/real-up`, with hashes.
  const commands = [...said.matchAll(/^\$ (.*)$/gm)]
    .map(([, line = '']) => line)
    .filter((line) => !/ -m venv |pip install|^export /.test(line))
  expect(commands).toHaveLength(2)
  const to = join(directory, 'rows')
  const shell = spawn('/bin/sh', ['-eu', '-c', commands.join('\n').replace(rows, to)], {
    cwd: root,
    env: {
      ...process.env,
      PATH: `${dirname(python)}:${process.env['PATH'] ?? ''}`,
      PADDOCK_DATA: join(directory, 'data'),
      ENGINE_URL: '',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const [status] = await once(shell, 'close')
  expect(status, out).toBe(0)
  const exported = (await readFile(join(to, 'rows.jsonl'), 'utf8')).trim().split('\n')
  return exported.map((line): unknown => (JSON.parse(line) as { readonly reward: unknown }).reward)
}
