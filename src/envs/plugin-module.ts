import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { requireOwnPlace } from '../config/index.ts'
import { PaddockError, resolvePackage } from '../core/index.ts'
import { environmentKit } from './kit.ts'

/**
 * What a plugin's module gives as default export or under `name`: the plugin itself, or what a function makes of the
 * {@link environmentKit}. `source` is an npm name, or a path that begins with `.` or `/`. Throws `ENVIRONMENT_INVALID` for a
 * module that cannot be loaded.
 */
export async function importPlugin(
  source: string,
  o: { readonly directory: string; readonly name: string },
): Promise<unknown> {
  const base = resolve(o.directory)
  const isPath = source.startsWith('.') || isAbsolute(source)
  if (isPath) await requireOwnPlace(resolve(base, source))
  let loaded: Record<string, unknown>
  try {
    const url = isPath ? pathToFileURL(resolve(base, source)).href : resolvePackage(source, base)
    loaded = await import(url)
  } catch (cause) {
    throw new PaddockError('ENVIRONMENT_INVALID', `The ${o.name} plugin ${source} cannot be loaded: ${String(cause)}`, {
      cause,
      data: { source },
      fix: isPath ? 'Check the path in paddock.config.ts.' : `Install it: npm install ${source}.`,
    })
  }
  const given = loaded['default'] ?? loaded[o.name]
  return typeof given === 'function' ? await given(environmentKit) : given
}
