import { randomUUID } from 'node:crypto'
import nodeModule from 'node:module'
import { pathToFileURL } from 'node:url'

/**
 * The URL that `import` of a package's name would load for a module in `directory`, with the conditions of `import`. The
 * second argument of `import.meta.resolve` needs a flag of Node's (v24), `require.resolve` knows nothing of packages for
 * `import` alone. Throws Node's `ERR_MODULE_NOT_FOUND` and its like.
 */
export function resolvePackage(name: string, directory: string): string {
  const parentURL = pathToFileURL(`${directory}/`).href
  const marker = `paddock-plugin:${randomUUID()}`
  const hooks = nodeModule.registerHooks({
    resolve: (specifier, context, next) =>
      specifier === marker ? next(name, { ...context, parentURL }) : next(specifier, context),
  })
  try {
    return import.meta.resolve(marker)
  } finally {
    hooks.deregister()
  }
}
