import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type LoadedConfig, PaddockError, type PluginRef } from '../core/index.ts'
import type { Exporter, ExporterRegistry } from '../trajectory/index.ts'

/** The built-in export formats and those of the configuration. */
export async function exportersOf(loaded: LoadedConfig): Promise<ExporterRegistry> {
  const { builtInExporters, exporterRegistry } = await import('../trajectory/index.ts')
  if (loaded.config.exporters.length === 0) return builtInExporters
  const plugins = await Promise.all(loaded.config.exporters.map((plugin) => exporterOf(plugin, loaded.directory)))
  return exporterRegistry([...builtInExporters.all(), ...plugins])
}

async function exporterOf(plugin: PluginRef, directory: string): Promise<Exporter> {
  const found = typeof plugin === 'string' ? await importPlugin(plugin, directory) : plugin
  if (isExporter(found)) return found
  throw new PaddockError(
    'EXPORTER_INVALID',
    `${typeof plugin === 'string' ? plugin : 'an object under exporters'} is no exporter`,
    { fix: 'Export default defineExporter({ … }).' },
  )
}

/** The default export of a module named by npm name or path. Throws `EXPORTER_INVALID`. */
async function importPlugin(source: string, directory: string): Promise<unknown> {
  const isPath = source.startsWith('.') || isAbsolute(source)
  try {
    const url = isPath
      ? pathToFileURL(resolve(directory, source)).href
      : import.meta.resolve(source, pathToFileURL(`${directory}/`).href)
    const loaded: unknown = await import(url)
    return typeof loaded === 'object' && loaded !== null && 'default' in loaded ? loaded.default : null
  } catch (cause) {
    throw new PaddockError('EXPORTER_INVALID', `${source} does not load: ${String(cause)}`, {
      fix: isPath ? 'Check the path in paddock.config.ts.' : `Install it: npm install ${source}.`,
      cause,
    })
  }
}

function isExporter(value: unknown): value is Exporter {
  return typeof value === 'object' && value !== null && 'prepare' in value && 'files' in value && 'name' in value
}
