import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../core/index.ts'
import type { Blobs } from '../../trajectory/index.ts'

/** A fresh, empty blob store. */
export interface BlobsUnderTest {
  readonly blobs: Blobs
  /** Changes the stored content of a blob behind the driver's back. */
  damage(digest: string): Promise<void>
  close(): Promise<void>
}

/** What every {@link Blobs} driver must do. */
export function blobsContract(name: string, make: () => Promise<BlobsUnderTest>): void {
  describe(`blobs contract: ${name}`, () => {
    let made: BlobsUnderTest
    beforeEach(async () => {
      made = await make()
    })
    afterEach(async () => made.close())

    it('gives content back under its SHA-256', async () => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (content) => {
          const digest = await made.blobs.put(content)
          expect(digest).toBe(sha256(content))
          expect(Buffer.from(await made.blobs.get(digest))).toEqual(Buffer.from(content))
        }),
        { numRuns: 20 },
      )
    })

    it('stores equal content once, also when it comes at once', async () => {
      const content = Buffer.from('the same')
      const digests = await Promise.all(Array.from({ length: 8 }, () => made.blobs.put(content)))
      expect(new Set(digests).size).toBe(1)
      const listed = []
      for await (const blob of made.blobs.list()) listed.push(blob)
      expect(listed).toEqual([{ digest: sha256(content), sizeBytes: content.length }])
    })

    it('knows what it has, and says NOT_FOUND for the rest', async () => {
      const digest = await made.blobs.put(Buffer.from('here'))
      expect(await made.blobs.has(digest)).toBe(true)
      expect(await made.blobs.has(sha256('absent'))).toBe(false)
      await expect(made.blobs.get(sha256('absent'))).rejects.toMatchObject({ code: 'NOT_FOUND' })
    })

    it('never gives out damaged content', async () => {
      const digest = await made.blobs.put(Buffer.from('sound'))
      await made.damage(digest)
      await expect(made.blobs.get(digest)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
    })
  })
}
