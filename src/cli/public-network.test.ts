import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { tempDir } from '../../test/fixtures/temp-dir.ts'
import { runCli } from './program.ts'

let root: string
beforeAll(async () => {
  root = tempDir()
  const files = {
    'task/task.toml': '',
    'task/instruction.md': 'Do it.\n',
    'task/environment/Dockerfile': 'FROM paddock-base\n',
    'task/tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
    'without.config.ts': "export default { tasks: { publicNetwork: 'without' } }\n",
  }
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
})

/** Loading is over where the task that is asked for is looked for; no box is started. */
const loaded = /no task .*none/

it.each([
  ['validate', [], false],
  ['validate', ['--public-network', 'refuse', '--config', 'without.config.ts'], false],
  ['validate', ['--task', 'none', '--public-network', 'without'], true],
  ['validate', ['--task', 'none', '--config', 'without.config.ts'], true],
  ['run', ['--task', 'none'], false],
  ['run', ['--task', 'none', '--public-network', 'open'], true],
  ['run', ['--task', 'none', '--config', 'without.config.ts'], true],
])('a task that asks for the public internet: paddock %s %j loads it: %s', async (command, options, loads) => {
  const said: string[] = []
  const code = await runCli([command, 'task', '--data', join(root, 'data'), ...options], {
    out: (text) => said.push(text),
    err: (text) => said.push(text),
    status: () => undefined,
    env: {},
    cwd: root,
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  })
  expect(code).not.toBe(0)
  const refusals = said
    .join('\n')
    .split('\n')
    .filter((line) => line.includes('environment.network_mode'))
  if (loads) expect([refusals, said.join('\n')]).toEqual([[], expect.stringMatching(loaded)])
  else expect(refusals).toEqual([expect.stringMatching(/task\.toml: .*public internet.*--public-network open/)])
})
