import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import Docker from 'dockerode'
import { beforeAll, expect, it } from 'vitest'
import { dockerProvider } from '../../src/sandbox/index.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

async function validated(...options: readonly string[]) {
  const args = ['test/published/tasks', '--json', '--parallel', '4', ...options]
  const { stdout, code } = await promisify(execFile)('scripts/validate-published', args, { cwd: root }).then(
    (done) => ({ ...done, code: 0 }),
    (error: Error & { readonly stdout?: string; readonly code?: number }) => ({
      stdout: error.stdout ?? '',
      code: error.code,
    }),
  )
  const { tasks }: { tasks: { name: string; result: string; cause: string | null }[] } = JSON.parse(stdout)
  return { code, rows: Object.fromEntries(tasks.map(({ name, result, cause }) => [name, cause ?? result])) }
}

beforeAll(async () => {
  await using sandbox = dockerProvider()
  for (const name of ['words', 'entry']) {
    const dockerfile = await readFile(join(root, `test/published/images/${name}.Dockerfile`), 'utf8')
    const { tag } = await sandbox.ensureImage({ kind: 'dockerfile', name: `published-${name}`, dockerfile })
    await new Docker().getImage(tag).tag({ repo: `paddock-published-${name}`, tag: 'latest' })
  }
}, 900_000)

it('a folder for each rule of Docker and Harbor is as it means, or refused by the name of what is not', async () => {
  const { code, rows } = await validated('--public-network', 'without')
  expect(rows).toEqual({
    'agent-is-another-uid': 'intended',
    'build-kit': expect.stringMatching(/^IMAGE_DOCKERFILE_UNSUPPORTED: /),
    'build-takes-too-long': expect.stringMatching(/^IMAGE_BUILD_FAILED: .*within 1000 ms/),
    'command-is-not-run': 'intended',
    'default-values': 'intended',
    dockerignore: 'intended',
    'entry-point': expect.stringMatching(/^TASK_UNSUPPORTED: .*ENTRYPOINT/),
    'first-line': 'intended',
    'image-by-reference': 'intended',
    'image-with-entry-point': expect.stringMatching(/^TASK_UNSUPPORTED: paddock-published-entry: ENTRYPOINT/),
    'relative-workdir': 'intended',
    'user-of-the-dockerfile': 'intended',
    'words-of-the-base': 'intended',
    'workdir-of-a-stage': 'intended',
  })
  expect(code).toBe(0)
}, 900_000)

it('a task that asks for the public network says so in one line, and nothing is proven then', async () => {
  const { code, rows } = await validated('--only', 'default-values')
  expect(rows).toEqual({
    'default-values': expect.stringMatching(/^TASK_UNSUPPORTED: .*environment\.network_mode.*--public-network open/),
  })
  expect(code).toBe(1)
})
