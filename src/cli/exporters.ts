import type { LoadedConfig } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import type { Exporter, ExporterRegistry } from '../trajectory/index.ts'
import { loadPlugin } from './plugins.ts'

/** The built-in export formats and those of the configuration. */
export async function exportersOf({ config, directory }: LoadedConfig): Promise<ExporterRegistry> {
  const { builtInExporters, exporterRegistry } = await import('../trajectory/index.ts')
  if (config.exporters.length === 0) return builtInExporters
  const plugins = await Promise.all(config.exporters.map((plugin) => loadPlugin(plugin, directory, 'EXPORTER_INVALID')))
  return exporterRegistry([...builtInExporters.all(), ...plugins.map(asExporter)])
}

function asExporter(value: unknown): Exporter {
  if (isExporter(value)) return value
  throw new PaddockError('EXPORTER_INVALID', 'a plugin under exporters is no exporter', {
    fix: 'Export default defineExporter({ … }).',
  })
}

function isExporter(value: unknown): value is Exporter {
  return typeof value === 'object' && value !== null && 'prepare' in value && 'files' in value && 'name' in value
}
