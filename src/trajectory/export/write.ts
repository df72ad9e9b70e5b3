import { type Clock, type Digest, type EngineFingerprint, PaddockError } from '../../core/index.ts'
import type { DropReason, ExportRollout, Selection, SelectionQuery, TokenAccounting } from '../rows-contract.ts'
import { type Exporter, manifestName, type PreparedExporter } from './contract.ts'
import { ExportLedger } from './ledger.ts'
import { type ExportAllowances, type Manifest, manifestOf } from './manifest.ts'
import { type MediaSink, withMediaFiles } from './media.ts'
import { NeedsCheck } from './needs.ts'
import { withSideChannelFiles } from './side-channels.ts'
import type { Blobs } from '../contract/index.ts'
import { dropOf, weightRuleOf } from '../select/index.ts'
import { directorySink } from './sink.ts'
import { DropLedger } from './tally.ts'

/** One export pass over a selection that is open already. */
export interface WriteRequest {
  readonly selection: Selection
  /** For the manifest: how the selection was made. */
  readonly query: SelectionQuery
  readonly exporter: Exporter
  readonly options: unknown
  readonly allow: ExportAllowances
  /** Directory that holds the export afterwards. */
  readonly out: string
  /** True: an earlier export at `out` is replaced once the new one is complete. */
  readonly replace: boolean
  readonly fingerprint: (digest: Digest) => Promise<EngineFingerprint>
  /** Where side channels are read from; null or absent: they are left out. */
  readonly sideChannels?: Pick<Blobs, 'get'>
  readonly clock: Clock
  readonly paddockVersion: string
  readonly signal: AbortSignal | null
}

/**
 * Writes the files and the manifest of one export. `out` appears whole or not at all. Memory is bounded by the
 * exporter's batch. Throws `EXPORT_REFUSED`, `EXPORTER_INVALID`, `STORE_CORRUPT`, and what the selection throws.
 */
export async function writeExport(request: WriteRequest): Promise<Manifest> {
  const { exporter, selection } = request
  const prepared = exporter.prepare(request.options)
  await using sink = await directorySink(request.out, exporter.files, {
    replace: request.replace,
    manifest: manifestName,
  })
  const pass = new ExportPass(request, prepared, (name, bytes) => sink.medium(name, bytes))
  await prepared.write(pass.rollouts(), sink)
  if (!pass.ended) {
    throw new PaddockError('EXPORTER_INVALID', `Exporter ${exporter.name} did not consume all rollouts`)
  }
  const summary = selection.summary()
  pass.needs.finish(summary.groups.asked ?? [])
  const manifest = manifestOf({
    createdAt: request.clock.now(),
    paddockVersion: request.paddockVersion,
    exporter: {
      name: exporter.name,
      version: exporter.version,
      needs: exporter.needs,
      purpose: exporter.purpose,
      trainer: exporter.trainer,
      options: request.options ?? {},
    },
    query: told(request.query),
    weightRule: weightRuleOf(request.query),
    allowances: request.allow,
    tokens: pass.settle(summary.accounting),
    summary,
    facts: pass.ledger.facts(),
    files: await sink.seal(),
    media: sink.media,
  })
  await sink.add(manifestName, `${JSON.stringify(manifest, null, 2)}\n`)
  await sink.publish()
  return manifest
}

/** The rollouts on their way from selection to exporter: filtered, refused and counted. */
class ExportPass {
  ended = false
  readonly ledger: ExportLedger
  readonly needs: NeedsCheck
  readonly #request: WriteRequest
  readonly #prepared: PreparedExporter
  readonly #medium: MediaSink
  readonly #drops = new DropLedger()

  constructor(request: WriteRequest, prepared: PreparedExporter, medium: MediaSink) {
    this.#medium = medium
    this.#request = request
    this.#prepared = prepared
    this.ledger = new ExportLedger(request.exporter, request.allow, request.fingerprint)
    this.needs = new NeedsCheck(request.exporter.name, request.exporter.trainer, request.query)
  }

  async *rollouts(): AsyncGenerator<ExportRollout> {
    for await (const rollout of this.#request.selection) {
      this.#request.signal?.throwIfAborted()
      const { kept, reason } = this.#filter(rollout)
      this.#drops.note(rollout, kept.rows, reason)
      if (kept.rows.length === 0) {
        this.ledger.noteEmptied(rollout, reason)
        continue
      }
      await this.ledger.note(kept)
      this.needs.note(kept)
      const withFiles = await withMediaFiles(kept, this.#medium)
      yield await withSideChannelFiles(withFiles, this.#request.sideChannels ?? null, this.#medium)
    }
    this.ended = true
  }

  /** The selection's accounting less the rows that the exporter did not take. */
  settle(selected: TokenAccounting): TokenAccounting {
    return this.#drops.settle(selected)
  }

  #filter(rollout: ExportRollout): { readonly kept: ExportRollout; readonly reason: DropReason } {
    // A rollout without rows is called what a stricter query calls it.
    let reason: DropReason =
      rollout.rows.length > 0 ? 'filtered' : (dropOf(rollout.rollout, {})?.reason ?? 'nothing_to_train')
    const taken = rollout.rows.map((row) => {
      const refusal = this.#prepared.accept(rollout, row)
      if (refusal !== null) reason = refusal
      return refusal === null
    })
    if (!taken.includes(false)) return { kept: rollout, reason }
    const keep = <T>(values: readonly T[]): readonly T[] => values.filter((_, index) => taken[index])
    return {
      kept: {
        ...rollout,
        rows: keep(rollout.rows),
        rowWeights: keep(rollout.rowWeights),
        conversations: keep(rollout.conversations),
        ...(rollout.spans === undefined ? {} : { spans: keep(rollout.spans) }),
      },
      reason,
    }
  }
}

/** A query as the manifest tells it: a selector by its name and version. */
function told({ selector, ...query }: SelectionQuery): object {
  return selector === undefined ? query : { ...query, selector: `${selector.name} ${selector.version}` }
}
