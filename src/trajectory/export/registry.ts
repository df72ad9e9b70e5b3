import { PaddockError } from '../../core/index.ts'
import type { Exporter } from './contract.ts'

/** Exporters by name. */
export interface ExporterRegistry {
  readonly names: readonly string[]
  all(): readonly Exporter[]
  /** Throws `EXPORT_FORMAT_UNKNOWN` with the list of names. */
  get(name: string): Exporter
}

/** A registry of the given exporters. Throws `EXPORTER_INVALID` when two have one name. */
export function exporterRegistry(exporters: readonly Exporter[]): ExporterRegistry {
  const byName = new Map<string, Exporter>()
  for (const exporter of exporters) {
    if (byName.has(exporter.name)) {
      throw new PaddockError('EXPORTER_INVALID', `Two exporters are named ${exporter.name}`, {
        fix: 'Rename one of them, or load only one.',
      })
    }
    byName.set(exporter.name, exporter)
  }
  const names = [...byName.keys()].toSorted()
  return {
    names,
    all: () => names.flatMap((name) => byName.get(name) ?? []),
    get(name) {
      const found = byName.get(name)
      if (found === undefined) {
        throw new PaddockError('EXPORT_FORMAT_UNKNOWN', `There is no export format ${JSON.stringify(name)}`, {
          data: { format: name, formats: names },
          fix: `Use one of: ${names.join(', ')}.`,
        })
      }
      return found
    },
  }
}
