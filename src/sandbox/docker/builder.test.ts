import Docker from 'dockerode'
import { afterAll, describe, expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { dockerProvider } from '../index.ts'
import { builderOf, planBuild } from './builder.ts'

const heredoc = 'FROM a\nRUN <<EOF\necho hi\nEOF\n'
const mount = 'FROM a\nRUN --mount=type=cache,target=/c true\n'
const builders = {
  classic: { daemon: '20.10.1', frontend: null },
  old: { daemon: '20.10.24+dfsg1', frontend: '1.2' },
  new: { daemon: '28.0.1', frontend: '1.14' },
}

describe('how a Dockerfile is built', () => {
  it.each<[keyof typeof builders, string, string]>([
    ['classic', 'FROM a\nRUN echo --mount=type=cache $((1<<EOF))\n', '1'],
    ['classic', '# syntax=docker/dockerfile:1\nFROM a\n', '1'],
    ['old', 'FROM --platform=linux/amd64 a\nCOPY --chown=1 --from=b /x /\n', '1'],
    ['old', '# syntax=docker/dockerfile:1.4\nFROM a\n', '2'],
    ['old', mount, '2'],
    ['old', 'FROM a\nCOPY --chmod=755 x /\n', '2'],
    ['old', 'FROM a\nARG TARGETARCH\n', '2'],
    ['old', 'FROM --platform=$BUILDPLATFORM a\n', '2'],
    ['new', heredoc, '2'],
    ['new', 'FROM a\nADD --checksum=sha256:1 https://x/y /\nCOPY --link x /\nADD https://x/y.git /src\n', '2'],
  ])('%s daemon, %j: version %s of the build', (builder, dockerfile, version) => {
    expect(planBuild('x', dockerfile, builders[builder])).toMatchObject({ version, fetches: null })
  })

  it.each<[keyof typeof builders, string, string]>([
    ['classic', heredoc, '20.10.1) has no BuildKit: line 2: RUN with a here-document'],
    [
      'classic',
      `FROM a\n${mount}COPY --link --chmod=1 x /\n`,
      'line 3: RUN --mount=type=cache (1.2); line 4: COPY --link (1.4); line 4: COPY --chmod',
    ],
    ['classic', '# syntax=mine/frontend\nFROM a\n', 'line 1: # syntax=mine/frontend'],
    ['old', heredoc, 'up to version 1.2: line 2: RUN with a here-document (1.4)'],
    [
      'old',
      'FROM a\nCOPY <<A <<B /x/\nA\nB\nADD \\\n  --checksum=1 https://x/y /\n',
      'line 2: COPY with a here-document (1.4); line 5: ADD --checksum (1.6)',
    ],
    ['new', 'FROM a\nCOPY --parents x/y /\n', 'line 2: COPY --parents (1.20)'],
    [
      'new',
      'FROM a\nRUN --mount=type=secret,id=k cat /run/secrets/k\nRUN --mount=type=ssh true\n',
      'line 2: RUN --mount=type=secret; line 3: RUN --mount=type=ssh',
    ],
    ['new', '# syntax=docker/dockerfile:1\nFROM a\nRUN --security=insecure true\n', 'line 3: RUN --security'],
  ])('%s daemon, %j is refused: %s', (builder, dockerfile, words) => {
    expect(() => planBuild('x', dockerfile, builders[builder])).toThrow(
      expect.objectContaining({ code: 'IMAGE_DOCKERFILE_UNSUPPORTED', message: expect.stringContaining(words) }),
    )
  })

  it('the frontend that a file names is fetched only where the own one does not do, and no line moves', () => {
    const text = (syntax: string, rest: string): string => `# syntax=${syntax}\n# escape=\`\n${rest}`
    const own = planBuild('x', text('docker/dockerfile:1', mount), builders.old)
    expect(own.fetches).toBeNull()
    expect(own.dockerfile).not.toContain('syntax=')
    expect(own.dockerfile.split('\n')).toHaveLength(text('x', mount).split('\n').length)
    for (const [syntax, rest] of [
      ['docker/dockerfile:1', heredoc],
      ['docker/dockerfile:1-labs', mount],
      ['mine/frontend:2', mount],
    ] as const) {
      const plan = planBuild('x', text(syntax, rest), builders.old)
      expect(plan).toMatchObject({
        version: '2',
        dockerfile: text(syntax, rest),
        fetches: { frontend: { reference: syntax, line: 1 } },
      })
    }
  })
})

const hasDocker = await requireDocker()
describe.runIf(hasDocker)('BuildKit of a daemon', async () => {
  const docker = new Docker()
  // Without a daemon the tests are still collected, so that they are counted as not run.
  const builder = hasDocker ? await builderOf(docker) : builders.old
  const made = new Set<string>()
  afterAll(async () => {
    for (const tag of made)
      await docker
        .getImage(tag)
        .remove({ force: true })
        .catch(() => undefined)
  })
  const own = newId().toLowerCase()
  const name = `build-kit-${own}`
  const image = (dockerfile: string, timeoutMs?: number) => ({
    kind: 'dockerfile' as const,
    name,
    dockerfile,
    context: [
      { path: 'hello', data: 'hello\n' },
      { path: 'unused', data: 'x' },
    ],
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  it('builds mounts, modes and platform arguments, with the syntax of a release that nothing can be fetched for', async () => {
    await using sandbox = dockerProvider()
    const lines: string[] = []
    const text = [
      '# syntax=docker/dockerfile:1',
      'FROM --platform=$BUILDPLATFORM paddock-base AS tools',
      'RUN echo tool > /tool',
      'FROM paddock-base',
      'ARG TARGETARCH',
      'COPY --chmod=751 --from=tools /tool /bin/tool',
      'RUN --mount=type=cache,target=/cache --mount=type=bind,source=hello,target=/in cp /in /cache/a && cat /cache/a > /out && echo "on $TARGETARCH" >> /out',
      'RUN --mount=type=bind,from=tools,source=/tool,target=/t cat /t >> /out && echo said-by-the-build'.replace(
        'said',
        own,
      ),
    ].join('\n')
    const ref = await sandbox.ensureImage(image(text), { onProgress: (line) => lines.push(line) })
    made.add(ref.tag)
    expect(lines).toContainEqual(expect.stringContaining('RUN --mount=type=bind,from=tools'))
    expect(lines).toContain(`${own}-by-the-build`)
    const facts = await docker.getImage(ref.tag).inspect()
    expect(facts.Config.Labels).toMatchObject({ paddock: 'image', 'paddock.recipe': ref.recipeDigest })
    await using box = await sandbox.createBox({ image: ref, profile: 'user', labels: { role: 'probe' } })
    const { stdout } = await box.exec({ command: 'cat /out; stat -c %a /bin/tool; ls -A /cache' })
    expect(stdout.toString()).toBe(`hello\non ${facts.Architecture}\ntool\n751\n`)
    expect(await sandbox.ensureImage(image(text))).toMatchObject({ id: ref.id, fresh: false })
  })

  it('says what failed with the last words of the build, and is ended with its time or its caller', async () => {
    const open = () => process.getActiveResourcesInfo().filter((one) => one.startsWith('Pipe')).length
    const before = open()
    await using sandbox = dockerProvider()
    const failing = image('FROM paddock-base\nRUN --mount=type=cache,target=/c echo last-words; exit 7\n')
    await expect(sandbox.ensureImage(failing)).rejects.toMatchObject({
      code: 'IMAGE_BUILD_FAILED',
      message: expect.stringMatching(/exit code: 7[^]*last-words/),
    })
    const endless = image('FROM paddock-base\nRUN --mount=type=cache,target=/c sleep 3000\n', 1500)
    await expect(sandbox.ensureImage(endless)).rejects.toMatchObject({ message: expect.stringContaining('1500 ms') })
    const stopped = new AbortController()
    const building = sandbox.ensureImage(image('FROM paddock-base\nRUN --mount=type=cache,target=/c sleep 4000\n'), {
      signal: stopped.signal,
      onProgress: (line) => (line.includes('sleep 4000') ? stopped.abort() : undefined),
    })
    await expect(building).rejects.toMatchObject({ name: 'AbortError' })
    // Nothing of a build that was cut stays open in this process.
    await expect.poll(open).toBeLessThanOrEqual(before)
  })

  it.runIf(builder.frontend !== null && Number(builder.frontend.split('.')[1]) < 4)(
    'refuses by line what is newer, and names the frontend that cannot be had',
    async () => {
      await using sandbox = dockerProvider()
      const text = 'FROM paddock-base\nRUN <<EOF\nfrom os import path\nEOF\n'
      await expect(sandbox.ensureImage(image(text))).rejects.toMatchObject({
        code: 'IMAGE_DOCKERFILE_UNSUPPORTED',
        message: expect.stringContaining('line 2: RUN with a here-document (1.4)'),
      })
      await expect(sandbox.ensureImage(image(`# syntax=127.0.0.1:9/frontend:1\n${text}`))).rejects.toMatchObject({
        code: 'IMAGE_DOCKERFILE_UNSUPPORTED',
        message: expect.stringMatching(
          /its frontend cannot be had[^]*line 1: # syntax=127\.0\.0\.1:9\/frontend:1.*line 3: RUN/,
        ),
      })
      // One that the daemon has is used: this image is none, and fails as such.
      const base = await sandbox.ensureImage({ kind: 'paddock-base' })
      await using mapped = dockerProvider({ images: { map: { '127.0.0.1:9/frontend:1': base.tag } } })
      await expect(mapped.ensureImage(image(`# syntax=127.0.0.1:9/frontend:1\n${text}`))).rejects.toMatchObject({
        code: 'IMAGE_BUILD_FAILED',
        message: expect.stringContaining('gateway.v0'),
      })
    },
  )
})
