import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type PluginRef, requireOwnPlace } from '../config/index.ts'
import { type ErrorCode, PaddockError, resolvePackage } from '../core/index.ts'

/**
 * A plugin of the configuration: the object itself, or the default export of an npm package or of a path relative to
 * the configuration file. Throws `code` where it cannot be loaded, `CONFIG_UNTRUSTED` for a path below a data directory or a
 * task folder.
 */
export async function loadPlugin(plugin: PluginRef, directory: string, code: ErrorCode): Promise<unknown> {
  if (typeof plugin !== 'string') return plugin
  const isPath = plugin.startsWith('.') || isAbsolute(plugin)
  if (isPath) await requireOwnPlace(resolve(directory, plugin))
  try {
    const url = isPath ? pathToFileURL(resolve(directory, plugin)).href : resolvePackage(plugin, directory)
    const loaded: unknown = await import(url)
    return typeof loaded === 'object' && loaded !== null && 'default' in loaded ? loaded.default : null
  } catch (cause) {
    throw new PaddockError(code, `The plugin ${plugin} does not load: ${String(cause)}`, {
      fix: isPath ? 'Check the path in paddock.config.ts.' : `Install it: npm install ${plugin}.`,
      cause,
    })
  }
}
