import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Docker from 'dockerode'
import { afterAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { dockerProvider, type ImageRecipe } from '../index.ts'
import { hostMirror } from './debian.ts'
import { evictImages } from './evict.ts'
import { noteImageUse } from './image-use.ts'

describe.runIf(await requireDocker())('images', () => {
  const provider = dockerProvider()
  const made = new Set<string>()
  afterAll(async () => {
    await provider.close()
    for (const tag of made) await new Docker().getImage(tag).remove({ force: true })
  })

  const recipe = (files: readonly { path: string; data: string }[], lines = ''): ImageRecipe => ({
    kind: 'dockerfile',
    name: 'Images Test!',
    dockerfile: `FROM paddock-base\nCOPY . /srv/here/\n${lines}`,
    context: files,
  })

  it('are built once for many who ask at once, and named by what is in them', async () => {
    const one = recipe([{ path: 'a/b', data: 'x' }])
    const refs = await Promise.all([1, 2, 3].map(() => provider.ensureImage(one)))
    for (const ref of refs) made.add(ref.tag)
    expect(refs.filter((ref) => ref.fresh)).toHaveLength(1)
    expect(new Set(refs.map((ref) => ref.id)).size).toBe(1)
    expect(refs[0]?.tag).toMatch(/^paddock-task-images-test:[0-9a-f]{16}$/)
    const other = await provider.ensureImage(recipe([{ path: 'a/b', data: 'y' }]))
    made.add(other.tag)
    expect(other.recipeDigest).not.toBe(refs[0]?.recipeDigest)
    await using box = await provider.createBox({ image: other, profile: 'user', labels: { role: 'probe' } })
    expect(await box.exec({ command: 'cat /srv/here/a/b' })).toMatchObject({ stdout: Buffer.from('y') })
  })

  it('go when the disk is full, those that were not used for longest first, unless a box uses them', async () => {
    const [old, used, recent] = await Promise.all(
      ['old', 'used', 'recent'].map((data) => provider.ensureImage(recipe([{ path: 'evict', data }]))),
    )
    if (old === undefined || used === undefined || recent === undefined) throw new Error('no images')
    for (const { tag } of [old, used, recent]) made.add(tag)
    await using _box = await provider.createBox({ image: used, profile: 'user', labels: { role: 'probe' } })
    // Older than anything that others have on this machine.
    noteImageUse(old.tag, new Date(1000))
    noteImageUse(used.tag, new Date(2000))
    noteImageUse(recent.tag, new Date(3000))
    const levels = [0.95, 0.91, 0.9, 0.5]
    const removed = await evictImages(new Docker(), {
      watermark: 0.85,
      dryRun: false,
      now: Date.now(),
      diskUse: async () => levels.shift() ?? 0,
    })
    expect(removed.filter(({ id }) => id.startsWith('paddock-task-images-test:'))).toEqual([
      { kind: 'image', id: old.tag, why: 'the disk is 95 % full; last used 1970-01-01T00:00:01.000Z' },
      { kind: 'image', id: recent.tag, why: 'the disk is 90 % full; last used 1970-01-01T00:00:03.000Z' },
    ])
    for (const { tag } of [old, recent]) made.delete(tag)
    expect((await provider.ensureImage(recipe([{ path: 'evict', data: 'used' }]))).fresh).toBe(false)
  })

  it('without any file but one static program run boxes too', async () => {
    const program = `#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char here[99];
  close(open("made", O_CREAT | O_WRONLY, 0600));
  return printf("%d %s %s\\n", getuid(), getcwd(here, 99), argc > 2 ? argv[2] : "") < 0;
}`
    const bare = await provider.ensureImage({
      kind: 'dockerfile',
      name: 'bare',
      dockerfile: `FROM paddock-base AS tools
COPY sh.c /sh.c
RUN gcc -static -o /sh /sh.c && printf '#!/bin/env node\\n' > /script && chmod 755 /script
FROM scratch
COPY --from=tools /sh /bin/sh
COPY --from=tools /bin/true /dynamic
COPY --from=tools /script /script
`,
      context: [{ path: 'sh.c', data: program }],
    })
    made.add(bare.tag)
    for (const [profile, uid] of [
      ['user', 1000],
      ['root', 0],
    ] as const) {
      await using box = await provider.createBox({ image: bare, profile, labels: { role: 'probe' } })
      const shell = await box.exec({ command: 'a line' })
      expect(shell).toMatchObject({ kind: 'exited', code: 0, stdout: Buffer.from(`${uid} /workspace a line\n`) })
      expect(await box.exec({ command: ['/usr/bin/node'] })).toMatchObject({ kind: 'exited', code: 127 })
      const notStarted = expect.stringMatching(/^\/dynamic needs \/lib.*\/ld-linux.*, which is not there$/)
      expect(await box.exec({ command: ['/dynamic'] })).toMatchObject({ kind: 'exited', code: 127, notStarted })
      const script = { kind: 'exited', code: 127, notStarted: '/script needs /bin/env, which is not there' }
      expect(await box.exec({ command: ['/script'] })).toMatchObject(script)
      expect((await box.getFiles('/workspace/made')).found).toBe(true)
    }
  })

  it('come from a directory, and a change of one mode is a change', async () => {
    const directory = tempDir()
    const from: ImageRecipe = {
      kind: 'dockerfile',
      name: 'tree',
      dockerfile: 'FROM paddock-base\nCOPY f /f',
      context: directory,
    }
    await writeFile(join(directory, 'f'), '#!/bin/sh\necho ok')
    const first = await provider.ensureImage(from)
    await rm(join(directory, 'f'))
    await writeFile(join(directory, 'f'), '#!/bin/sh\necho ok', { mode: 0o755 })
    const second = await provider.ensureImage(from)
    made.add(first.tag).add(second.tag)
    await using box = await provider.createBox({ image: second, profile: 'user', labels: { role: 'probe' } })
    expect(await box.exec({ command: ['/f'] })).toMatchObject({ kind: 'exited', code: 0 })
    expect(second.tag).not.toBe(first.tag)
  })

  it('hold what a .dockerignore leaves, change with what their base’s tag means, and are built in time', async () => {
    const directory = tempDir()
    const docker = new Docker()
    const repo = `paddock-images-test-${process.pid}`
    const base = `${repo}:moved`
    const tagBase = async (from: string): Promise<void> => {
      await docker.getImage(from).tag({ repo, tag: 'moved' })
    }
    try {
      await mkdir(join(directory, 'keys/public'), { recursive: true })
      for (const name of ['f', '.env', 'keys/secret', 'keys/public/one', 'Dockerfile']) {
        await writeFile(join(directory, name), name)
      }
      await writeFile(join(directory, '.dockerignore'), '.env\nkeys\n!keys/public\nDockerfile\n.dockerignore\n')
      const from = (more: Partial<Extract<ImageRecipe, { kind: 'dockerfile' }>> = {}): ImageRecipe => {
        const dockerfile = `FROM ${base}\nCOPY . /here/\n`
        return { kind: 'dockerfile', name: 'moved', dockerfile, context: directory, ...more }
      }
      const one = await provider.ensureImage({ kind: 'paddock-base' })
      await tagBase(one.tag)
      const first = await provider.ensureImage(from())
      await writeFile(join(directory, '.env'), 'another secret')
      const same = await provider.ensureImage(from())
      made.add(first.tag).add(same.tag)
      expect(same).toMatchObject({ tag: first.tag, fresh: false })
      await using box = await provider.createBox({ image: first, profile: 'user', labels: { role: 'probe' } })
      const listed = await box.exec({ command: 'cd /here && find . -type f | sort' })
      expect(listed).toMatchObject({ stdout: Buffer.from('./f\n./keys/public/one\n') })
      await tagBase(first.tag)
      const moved = await provider.ensureImage(from())
      made.add(moved.tag)
      expect(moved).toMatchObject({ fresh: true })
      const slow = provider.ensureImage(from({ dockerfile: `FROM ${base}\nRUN sleep 600\n`, timeoutMs: 500 }))
      await expect(slow).rejects.toMatchObject({ code: 'IMAGE_BUILD_FAILED', message: /within 500 ms/ })
    } finally {
      await docker.getImage(base).remove({ force: true })
    }
  })

  it('fail with the words of the build, and with a name of its own for what the builder does not know', async () => {
    const failing = provider.ensureImage(recipe([], 'RUN echo about to fail && exit 7'))
    await expect(failing).rejects.toMatchObject({ code: 'IMAGE_BUILD_FAILED', message: /about to fail/ })
    const unknown = provider.ensureImage(recipe([], 'COPIES a b\n'))
    await expect(unknown).rejects.toMatchObject({ code: 'IMAGE_DOCKERFILE_UNSUPPORTED' })
    const directory = tempDir()
    await symlink('/etc/passwd', join(directory, 'out'))
    const leaking = provider.ensureImage({
      kind: 'dockerfile',
      name: 'x',
      dockerfile: 'FROM paddock-base',
      context: directory,
    })
    await expect(leaking).rejects.toMatchObject({ code: 'PATH_UNSAFE' })
    const absent = provider.ensureImage({ kind: 'reference', reference: '127.0.0.1:9/none:1' })
    await expect(absent).rejects.toMatchObject({ code: 'IMAGE_MISSING' })
  })
})

describe('the package mirror of the host', () => {
  it('is read from both forms of its sources', async () => {
    const etc = tempDir()
    expect(hostMirror(etc)).toBeNull()
    await writeFile(
      join(etc, 'sources.list'),
      '# deb http://no.example/debian x\ndeb [arch=amd64] http://one.example/debian bookworm main\n',
    )
    expect(hostMirror(etc)).toBe('http://one.example/debian')
  })
})

describe('a daemon that is not there', () => {
  it('is a fact of the probe and an infra error of everything else', async () => {
    await using provider = dockerProvider({ socketPath: '/nowhere/docker.sock' })
    expect(await provider.probe()).toMatchObject({
      reachable: false,
      problems: [{ code: 'docker_unreachable', weight: 'fatal' }],
    })
    await expect(provider.ensureImage({ kind: 'paddock-base' })).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' })
    await expect(provider.sweep()).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' })
  })
})
