import { type Clock, PaddockError, systemClock } from '../../core/index.ts'
import type { Blobs } from '../contract/index.ts'
import type { SelectionQuery } from '../rows-contract.ts'
import { type RequestReader, selectForExport, type SelectionSource } from '../select/index.ts'
import { builtInExporters } from './built-in.ts'
import type { Exporter } from './contract.ts'
import type { ExportAllowances, Manifest } from './manifest.ts'
import { writeExport } from './write.ts'

/** An export from a store, owned or opened for reading. */
export interface ExportRequest {
  readonly reader: SelectionSource
  /** Turns requests of all dialects into chat messages; see {@link RequestReader}. */
  readonly readRequest?: RequestReader
  /** A built-in format by name, or an exporter of a registry. */
  readonly exporter: string | Exporter
  /** Directory that holds the export afterwards. */
  readonly out: string
  readonly query?: SelectionQuery
  /** Options of the exporter; see docs/reference/export-formats.md. */
  readonly options?: unknown
  readonly allow?: Partial<ExportAllowances>
  /** True: an earlier export at `out` is replaced once the new one is complete. */
  readonly replace?: boolean
  readonly clock?: Clock
  /** Given: side channels (alternatives per token, routed experts) become files of the export too. */
  readonly sideChannels?: Pick<Blobs, 'get'>
  readonly paddockVersion: string
  readonly signal?: AbortSignal
}

/**
 * Selects, writes and accounts: the files of one format and `manifest.json` at `out`, whole or not at all. What is
 * left out by default depends on the format's purpose; the query overrules it. Returns the manifest. Throws
 * `EXPORT_FORMAT_UNKNOWN`, `EXPORT_REFUSED`, `EXPORTER_INVALID`, `USAGE`, `STORE_CORRUPT`.
 */
export async function runExport(request: ExportRequest): Promise<Manifest> {
  const exporter = typeof request.exporter === 'string' ? builtInExporters.get(request.exporter) : request.exporter
  const allow = {
    mixedLogprobKinds: false,
    unknownLogprobKind: false,
    mixedVerifiers: false,
    mixedWeights: false,
    sharedVerdicts: false,
    unvalidatedVerdicts: false,
    ...request.allow,
  }
  const query = { ...defaultsOf(exporter, allow), ...request.query }
  if (query.view === 'clean' && exporter.purpose === 'rl') {
    const why = 'nothing was sampled in the clean context, so its tokens have no logprobs there'
    throw new PaddockError('EXPORT_REFUSED', `Export as ${exporter.name}: ${why}.`, {
      fix: 'Leave `--view` at `as_sampled`, or take jsonl or a format for imitation.',
    })
  }
  return writeExport({
    selection: selectForExport(
      { recorder: request.reader.recorder, catalogue: request.reader.catalogue, readRequest: request.readRequest },
      query,
    ),
    query,
    exporter,
    options: request.options ?? {},
    allow,
    out: request.out,
    replace: request.replace ?? false,
    fingerprint: (digest) => request.reader.catalogue.fingerprint(digest),
    clock: request.clock ?? systemClock,
    paddockVersion: request.paddockVersion,
    ...(request.sideChannels === undefined ? {} : { sideChannels: request.sideChannels }),
    signal: request.signal ?? null,
  })
}

/** An archive leaves nothing out for being unusable; the other purposes start from the query's own defaults. */
function defaultsOf({ purpose, needs }: Exporter, allow: ExportAllowances): SelectionQuery {
  // Of mixed weights nobody can say which policy sampled which token, or what it had before it.
  if (purpose === 'rl') return { maskMixedWeights: !allow.mixedWeights, trainedRowsOnly: true }
  // What was imported has words and no tokens.
  const imported = needs === 'messages' ? { includeImported: true } : {}
  if (purpose !== 'archive') return imported
  return {
    ...imported,
    includeNullVerdicts: true,
    includeTainted: true,
    includeUnfinished: true,
    includeUntrainedRows: true,
    includeEvents: true,
  }
}
