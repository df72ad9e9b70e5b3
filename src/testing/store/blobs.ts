import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../core/index.ts'
import type { Blobs } from '../../trajectory/index.ts'

/** Fresh, empty blobs. */
export interface BlobsUnderTest {
  readonly blobs: Blobs
  /** Spoils the stored content behind the driver's back. */
  corrupt(digest: string): Promise<void>
  close(): Promise<void>
}

/** What every {@link Blobs} driver must do. */
export function blobsContract(name: string, make: () => Promise<BlobsUnderTest>): void {
  describe(`blobs contract: ${name}`, () => {
    let made: BlobsUnderTest
    let blobs: Blobs
    beforeEach(async () => {
      made = await make()
      blobs = made.blobs
    })
    afterEach(async () => made.close())

    const listed = async (): Promise<{ digest: string; sizeBytes: number }[]> => {
      const all: { digest: string; sizeBytes: number }[] = []
      for await (const blob of blobs.list()) all.push(blob)
      return all
    }

    it.each([0, 1, 100_000])('gives %i bytes back under their SHA-256', async (size) => {
      const content = new Uint8Array(size).fill(7)
      const digest = await blobs.put(content)
      expect(digest).toBe(sha256(content))
      expect(Buffer.compare(await blobs.get(digest), content)).toBe(0)
      expect(await blobs.has(digest)).toBe(true)
    })

    it('stores equal content once, also when it comes at the same moment', async () => {
      const content = Buffer.from('same')
      const digests = await Promise.all(Array.from({ length: 8 }, () => blobs.put(content)))
      expect(new Set(digests).size).toBe(1)
      expect(await listed()).toEqual([{ digest: sha256(content), sizeBytes: 4 }])
    })

    it('lists everything and nothing else', async () => {
      expect(await listed()).toEqual([])
      const digests = await Promise.all(['a', 'b', 'c'].map((text) => blobs.put(Buffer.from(text))))
      expect(new Set((await listed()).map((blob) => blob.digest))).toEqual(new Set(digests))
    })

    it('says what it does not have, and takes no path for a digest', async () => {
      expect(await blobs.has(sha256('absent'))).toBe(false)
      await expect(blobs.get(sha256('absent'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
      await expect(blobs.get('../../etc/passwd')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    })

    it('never gives out content that lost its digest', async () => {
      const digest = await blobs.put(Buffer.from('whole'))
      await made.corrupt(digest)
      await expect(blobs.get(digest)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    })
  })
}
