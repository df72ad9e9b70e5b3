/** The suite that every exporter must pass, built in or not. */
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PaddockError } from '../../core/index.ts'
import type {
  Exporter,
  ExportRollout,
  Manifest,
  Selection,
  TrainerNeeds,
  WriteRequest,
} from '../../trajectory/index.ts'
import { manifestName, writeExport } from '../../trajectory/index.ts'
import {
  arbitrarySelection,
  generatedFingerprint,
  selectionMissing,
  selectionOf,
  uniformSelection,
} from './generate.ts'

/** A row as it can be read back from an export's files. */
export interface DecodedRow {
  readonly rowId: string
  readonly rolloutId: string
  readonly groupId: string
  readonly reward: number | null
  /** Only of `rl` exporters. */
  readonly advantage?: number | null
  readonly tokens: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
}

/** A conversation as it can be read back. Texts are compared as parsed JSON without `weight`. */
export interface DecodedConversation {
  readonly messages: readonly unknown[]
}

/** What the author of an exporter adds. */
export interface ExporterContractOptions {
  readonly options?: unknown
  /** Reads the files of a `tokens` exporter back, by other code than the one that wrote them. */
  readonly decodeRows?: (directory: string) => Promise<readonly DecodedRow[]>
  /** Reads the files of a `messages` exporter back. */
  readonly decodeConversations?: (directory: string) => Promise<readonly DecodedConversation[]>
}

const nothingAllowed = {
  mixedLogprobKinds: false,
  unknownLogprobKind: false,
  mixedVerifiers: false,
  mixedWeights: false,
  sharedVerdicts: false,
  unvalidatedVerdicts: false,
}

/** Declares the suite for one exporter inside a vitest file. */
export function exporterContract(exporter: Exporter, given: ExporterContractOptions): void {
  describe(`exporterContract: ${exporter.name}`, () => {
    let root = ''
    let made = 0
    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), 'paddock-exporter-'))
    })
    afterAll(() => rm(root, { recursive: true, force: true }))

    const fresh = (): string => join(root, String((made += 1)))
    const write = (selection: Selection, out: string, request: Partial<WriteRequest> = {}): Promise<Manifest> =>
      writeExport({
        selection,
        query: {},
        exporter,
        options: given.options,
        allow: nothingAllowed,
        out,
        replace: false,
        fingerprint: () => Promise.resolve(generatedFingerprint),
        clock: { now: () => 1_700_000_000_000, monotonic: () => 0 },
        paddockVersion: '0.0.0',
        signal: null,
        ...request,
      })
    const taken = (rollout: ExportRollout): readonly number[] =>
      rollout.rows.flatMap((row, index) =>
        exporter.prepare(given.options).accept(rollout, row) === null ? [index] : [],
      )

    it('writes the declared files, hashed and measured in the manifest', async () => {
      await fc.assert(
        fc.asyncProperty(arbitrarySelection(exporter.trainer), async (selection) => {
          const out = fresh()
          const manifest = await write(selection.open(), out)
          expect((await readdir(out)).toSorted()).toEqual([...exporter.files, manifestName].toSorted())
          for (const file of manifest.files) {
            const bytes = await readFile(join(out, file.name))
            expect(file.size_bytes).toBe(bytes.byteLength)
            expect(file.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
          }
          expect(JSON.parse(await readFile(join(out, manifestName), 'utf8'))).toEqual(manifest)
        }),
        { numRuns: 15 },
      )
    })

    it('puts each sampled token in exactly one bucket', async () => {
      await fc.assert(
        fc.asyncProperty(arbitrarySelection(exporter.trainer), async (selection) => {
          const { tokens, rows } = await write(selection.open(), fresh())
          const inBuckets = [tokens.trainable, ...Object.values(tokens.masked), ...Object.values(tokens.not_exported)]
          expect(inBuckets.reduce((a, b) => a + b, 0)).toBe(selection.accounting.sampled)
          expect(tokens.sampled).toBe(selection.accounting.sampled)
          expect(tokens.by_answer_length.reduce((n, one) => n + one.trainable, 0)).toBe(tokens.trainable)
          const kept = selection.rollouts.flatMap((rollout) => taken(rollout).flatMap((i) => rollout.rows[i] ?? []))
          expect(rows.count).toBe(kept.length)
          expect(tokens.trainable).toBe(kept.reduce((n, row) => n + row.mask.reduce((a, b) => a + b, 0), 0))
        }),
        { numRuns: 25 },
      )
    })

    it('writes the same bytes for the same selection', async () => {
      await fc.assert(
        fc.asyncProperty(arbitrarySelection(exporter.trainer), async (selection) => {
          const manifests = [await write(selection.open(), fresh()), await write(selection.open(), fresh())]
          expect(manifests[1]?.files).toEqual(manifests[0]?.files)
        }),
        { numRuns: 10 },
      )
    })

    const { decodeRows, decodeConversations } = given
    if (decodeRows !== undefined) {
      it('gives back every id, mask and logprob of every row', async () => {
        await fc.assert(
          fc.asyncProperty(arbitrarySelection(exporter.trainer), async (selection) => {
            const out = fresh()
            await write(selection.open(), out)
            const expected = selection.rollouts.flatMap((rollout) =>
              taken(rollout).flatMap((index): DecodedRow[] => {
                const row = rollout.rows[index]
                if (row === undefined) return []
                return [
                  {
                    rowId: row.id,
                    rolloutId: row.rolloutId,
                    groupId: rollout.group.id,
                    reward: rollout.verdict?.reward ?? null,
                    ...(exporter.purpose === 'rl'
                      ? { advantage: (rollout.advantage ?? 0) * (rollout.rowWeights[index] ?? 1) + 0 }
                      : {}),
                    tokens: [...row.tokens],
                    mask: [...row.mask],
                    // JSON and text forms have no negative zero, and no reader of logprobs cares.
                    logprobs: [...row.logprobs].map((value) => value + 0),
                  },
                ]
              }),
            )
            const decoded = await decodeRows(out)
            expect(
              decoded.map((row) => ({ ...row, logprobs: row.logprobs.map((value) => Math.fround(value) + 0) })),
            ).toEqual(expected)
          }),
          { numRuns: 40 },
        )
      })
    }
    if (decodeConversations !== undefined) {
      it('gives back every message of every conversation', async () => {
        await fc.assert(
          fc.asyncProperty(arbitrarySelection(exporter.trainer), async (selection) => {
            const out = fresh()
            await write(selection.open(), out)
            const expected = selection.rollouts.flatMap((rollout) =>
              taken(rollout).map((index) => ({
                messages: (rollout.conversations[index]?.messages ?? []).map((text): unknown => JSON.parse(text)),
              })),
            )
            const decoded = await decodeConversations(out)
            expect(decoded.map(({ messages }) => ({ messages: messages.map(withoutWeight) }))).toEqual(expected)
          }),
          { numRuns: 30 },
        )
      })
    }

    it('writes while it reads, holding a bounded batch', async () => {
      const selection = uniformSelection(400, 2_000)
      const out = fresh()
      let largest = 0
      const watched = async function* (): AsyncGenerator<ExportRollout> {
        for (const [index, rollout] of selection.rollouts.entries()) {
          if (index === selection.rollouts.length - 1) largest = await partialBytes(root)
          yield rollout
        }
      }
      const source = selection.open()
      const manifest = await write(
        { [Symbol.asyncIterator]: () => drained(source, watched()), summary: () => source.summary() },
        out,
      )
      const total = manifest.files.reduce((n, file) => n + file.size_bytes, 0)
      expect(largest).toBeGreaterThan(total / 10)
    })

    it('leaves nothing behind when the selection fails', async () => {
      const selection = uniformSelection(3, 10)
      const out = fresh()
      const failing = {
        async *[Symbol.asyncIterator]() {
          yield* await Promise.resolve(selection.rollouts)
          throw new PaddockError('STORE_CORRUPT', 'broken on purpose')
        },
        summary: () => selection.open().summary(),
      }
      const before = await readdir(root)
      await expect(write(failing, out)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
      expect(await readdir(root)).toEqual(before)
    })

    it('leaves an earlier export alone, and replaces it only when told', async () => {
      const out = fresh()
      const first = await write(uniformSelection(1, 4).open(), out)
      await expect(write(uniformSelection(2, 4).open(), out)).rejects.toMatchObject({ code: 'EXPORT_REFUSED' })
      expect(JSON.parse(await readFile(join(out, manifestName), 'utf8'))).toEqual(first)
      const second = await write(uniformSelection(2, 4).open(), out, { replace: true })
      expect(JSON.parse(await readFile(join(out, manifestName), 'utf8'))).toEqual(second)
      expect((await readdir(root)).filter((name) => name.startsWith('.'))).toEqual([])
    })

    for (const [need, isNeeded] of Object.entries(exporter.trainer)) {
      // `Object.entries` widens the keys to string; the record has no others.
      const name = need as keyof TrainerNeeds
      // What takes a rollout as one chain is told so first.
      if (!isNeeded || (name === 'oneRowPerRollout' && exporter.trainer.contiguousPrefix)) continue
      it(`refuses, by name, what misses its need of ${name}`, async () => {
        const before = await readdir(root)
        await expect(write(selectionMissing(name).open(), fresh())).rejects.toMatchObject({
          code: 'EXPORT_REFUSED',
          data: { need: name },
        })
        expect(await readdir(root)).toEqual(before)
      })
    }

    if (exporter.purpose === 'rl') {
      it('refuses a null reward, mixed logprob kinds and an unknown kind', async () => {
        const { rollouts, accounting } = uniformSelection(2, 4)
        const change = (edit: (rollout: ExportRollout) => ExportRollout): Selection =>
          selectionOf(
            rollouts.map((rollout, index) => (index === 1 ? edit(rollout) : rollout)),
            accounting,
          )
        const kind = (logprobKind: 'unknown' | 'temperature') => (rollout: ExportRollout) => ({
          ...rollout,
          rows: rollout.rows.map((row) => ({ ...row, logprobKind })),
        })
        const nullVerdict = (rollout: ExportRollout): ExportRollout => ({ ...rollout, verdict: null })
        for (const edit of [nullVerdict, kind('temperature'), kind('unknown')]) {
          await expect(write(change(edit), fresh())).rejects.toMatchObject({ code: 'EXPORT_REFUSED' })
        }
        const allow = { ...nothingAllowed, mixedLogprobKinds: true, unknownLogprobKind: true }
        const manifest = await write(change(kind('unknown')), fresh(), { allow })
        expect(manifest.logprob_kinds).toEqual({ raw: 1, unknown: 1 })
        expect(manifest.allowances.unknown_logprob_kind).toBe(true)
      })
    }
  })
}

/** Yields the second source and drains the first beside it, so that the first's summary is complete. */
async function* drained(source: Selection, watched: AsyncIterable<ExportRollout>): AsyncGenerator<ExportRollout> {
  yield* watched
  for await (const _ of source) continue
}

async function partialBytes(root: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(root)) {
    if (!entry.includes('.partial-')) continue
    for (const file of await readdir(join(root, entry))) bytes += (await readFile(join(root, entry, file))).byteLength
  }
  return bytes
}

function withoutWeight(message: unknown): unknown {
  if (typeof message !== 'object' || message === null || !('weight' in message)) return message
  const { weight: _, ...rest } = message
  return rest
}
