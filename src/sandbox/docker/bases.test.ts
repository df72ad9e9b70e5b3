import Docker from 'dockerode'
import { afterAll, describe, expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { dockerProvider, type ImageOptions } from '../index.ts'
import { startRegistry } from './registry.fixture.ts'

describe.runIf(await requireDocker())('images of others', () => {
  const made = new Set<string>()
  afterAll(async () => {
    for (const tag of made)
      await new Docker()
        .getImage(tag)
        .remove({ force: true })
        .catch(() => undefined)
  })
  const own = newId().toLowerCase()
  const name = (part: string): string => `paddock-bases-${part}-${own}`
  const dockerfile = (text: string) => ({ kind: 'dockerfile' as const, name: name('built'), dockerfile: text })

  it('are those that the map names, in FROM, in COPY --from and by reference, and the map is part of what is made', async () => {
    await using plain = dockerProvider()
    const base = await plain.ensureImage(dockerfile('FROM paddock-base\nRUN echo mapped > /mapped\n'))
    made.add(base.tag)
    const map = { [name('theirs')]: base.tag, 'other.invalid/files:1': base.tag, [name('ours')]: 'paddock-base' }
    await using sandbox = dockerProvider({ images: { map } })
    const text = [
      `ARG BASE=${name('theirs')}`,
      'FROM ${BASE}:latest AS first',
      `FROM ${name('ours')}`,
      'COPY --from=first /mapped /one',
      'COPY --from=other.invalid/files:1 /mapped /two',
    ].join('\n')
    const image = await sandbox.ensureImage(dockerfile(text))
    made.add(image.tag)
    await using box = await sandbox.createBox({ image, profile: 'user', labels: { role: 'probe' } })
    expect(await box.exec({ command: 'cat /one /two' })).toMatchObject({ stdout: Buffer.from('mapped\nmapped\n') })
    expect(await sandbox.ensureImage({ kind: 'reference', reference: name('theirs') })).toMatchObject({
      tag: base.tag,
      id: base.id,
    })
    // Another image for the same name is another image of the task.
    const other = await plain.ensureImage({ kind: 'paddock-base' })
    await using moved = dockerProvider({ images: { map: { ...map, [name('theirs')]: other.tag } } })
    const again = await moved.ensureImage(dockerfile(`FROM ${name('theirs')}\nRUN true\n`))
    const before = await sandbox.ensureImage(dockerfile(`FROM ${name('theirs')}\nRUN true\n`))
    for (const { tag } of [again, before]) made.add(tag)
    expect(again.recipeDigest).not.toBe(before.recipeDigest)
    expect((await sandbox.probe()).images).toContain(`paddock-base stands for ${name('ours')} (made here)`)
  })

  it('are pulled from a mirror under its name, with tag or digest, before Docker Hub is asked', async () => {
    await using registry = await startRegistry({ name: 'hub/library/' + name('pulled'), tag: 'latest', file: 'hello' })
    const none = '127.0.0.1:9'
    await using sandbox = dockerProvider({ images: { mirrors: [none, `${registry.host}/hub`] } })
    const lines: string[] = []
    const o: ImageOptions = { onProgress: (line) => lines.push(line) }
    const found = await sandbox.ensureImage({ kind: 'reference', reference: name('pulled') }, o)
    made.add(found.tag)
    expect(found).toMatchObject({ tag: `${registry.host}/hub/library/${name('pulled')}:latest`, fresh: true })
    expect(found.says).toMatchObject({ workdir: '/from-the-registry' })
    // A bare name means its tag latest; the list of all tags is not asked for.
    expect(registry.asked.filter((url) => url.includes('/tags/'))).toEqual([])
    const pinned = `${name('pulled')}@${registry.digest}`
    const image = await sandbox.ensureImage(dockerfile(`FROM ${pinned}\nCOPY --from=${name('pulled')} /hello /again\n`))
    made.add(image.tag)
    made.add(`${registry.host}/hub/library/${pinned}`)
    const asked = registry.asked.length
    expect(await sandbox.ensureImage({ kind: 'reference', reference: name('pulled') })).toMatchObject({ fresh: false })
    expect(registry.asked).toHaveLength(asked)
    expect((await sandbox.probe()).images).toEqual(
      [none, `${registry.host}/hub`].map((host) => `${host} is asked before Docker Hub`),
    )
  })

  it('that cannot be had name the key of the map', async () => {
    await using sandbox = dockerProvider({ images: { map: { [name('mapped')]: '127.0.0.1:9/nothing:1' } } })
    await expect(sandbox.ensureImage(dockerfile('FROM 127.0.0.1:9/none:1\n'))).rejects.toMatchObject({
      code: 'IMAGE_MISSING',
      message: expect.stringContaining('127.0.0.1:9/none:1 cannot be pulled'),
      fix: expect.stringContaining("sandbox: { images: { map: { '127.0.0.1:9/none:1': 'my/base:1' } } }"),
    })
    await expect(sandbox.ensureImage({ kind: 'reference', reference: name('mapped') })).rejects.toMatchObject({
      code: 'IMAGE_MISSING',
      message: expect.stringContaining(`sandbox.images.map has it for ${name('mapped')}`),
    })
  })
})
