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
  const lines = stdout.trim().split('\n')
  const tasks: { task: string; status: string; problems: string[] }[] = lines
    .slice(0, -1)
    .map((line) => JSON.parse(line))
  const { totals }: { totals: object } = JSON.parse(lines.at(-1) ?? '')
  const rows = tasks.map(({ task, status, problems }) => [task, [status, ...problems].slice(0, 2).join(' ')])
  return { code, totals, rows: Object.fromEntries(rows) }
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
  const { code, rows, totals } = await validated('--public-network', 'without')
  expect(rows).toEqual({
    'agent-is-another-uid': 'proven',
    'build-kit': 'proven',
    'build-secret': expect.stringMatching(/^unbuilt IMAGE_DOCKERFILE_UNSUPPORTED: .*line 2: RUN --mount=type=secret/),
    'build-takes-too-long': expect.stringMatching(/^unbuilt IMAGE_BUILD_FAILED: .*within 1000 ms/),
    'check-of-the-image': 'proven',
    'command-is-not-run': 'proven',
    'default-values': 'proven',
    dockerignore: 'proven',
    'entry-point': expect.stringMatching(/^refused TASK_UNSUPPORTED: .*ENTRYPOINT/),
    'first-line': 'proven',
    'image-by-reference': 'proven',
    'image-with-entry-point': expect.stringMatching(/^refused TASK_UNSUPPORTED: paddock-published-entry: ENTRYPOINT/),
    'relative-workdir': 'proven',
    'shared-volume': expect.stringMatching(/^refused TASK_UNSUPPORTED: .*VOLUME/),
    'user-of-the-dockerfile': 'proven',
    'words-of-the-base': 'proven',
    'workdir-of-a-stage': 'proven',
  })
  expect(totals).toMatchObject({ proven: 12, refused: 3, unbuilt: 2, refuted: 0, flaky: 0, infra: 0 })
  // Five of them failed, and the others were tried all the same.
  expect(code).toBe(1)
}, 900_000)

it('a task that asks for the public network says so in one line, and nothing is proven then', async () => {
  const { code, rows } = await validated('--task', 'default-values')
  expect(rows).toEqual({
    'default-values': expect.stringMatching(
      /^refused TASK_UNSUPPORTED: .*environment\.network_mode.*--public-network open/,
    ),
  })
  expect(code).toBe(1)
})
