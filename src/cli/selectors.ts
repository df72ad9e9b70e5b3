import type { LoadedConfig } from '../config/index.ts'
import { PaddockError } from '../core/index.ts'
import type { Selector } from '../trajectory/index.ts'
import { loadPlugin } from './plugins.ts'

/** What a selector is wanted for: `select` chooses rollouts, `choose` tasks. */
type Part = 'select' | 'choose'

/**
 * A built-in selector, or one of the configuration, that does what it is wanted for. Throws `SELECTOR_UNKNOWN` with the names
 * that exist, `SELECTOR_INVALID`.
 */
export async function selectorFor({ config, directory }: LoadedConfig, name: string, part: Part): Promise<Selector> {
  const { builtInSelectors, defineSelector } = await import('../trajectory/index.ts')
  const plugins = await Promise.all(config.selectors.map((plugin) => loadPlugin(plugin, directory, 'SELECTOR_INVALID')))
  const selectors = [...builtInSelectors, ...plugins.map((plugin) => defineSelector(asSelector(plugin)))]
  const names = selectors.map((selector) => selector.name)
  const twice = names.find((one, at) => names.indexOf(one) !== at)
  if (twice !== undefined) {
    throw new PaddockError('SELECTOR_INVALID', `There are two selectors named ${twice}`, {
      fix: 'Rename one of them, or list it once.',
    })
  }
  const fit = selectors.filter((selector) => selector[part] !== undefined)
  const found = fit.find((selector) => selector.name === name)
  if (found !== undefined) return found
  const known = fit.map((selector) => selector.name)
  const what = part === 'select' ? 'rollouts' : 'tasks'
  throw new PaddockError('SELECTOR_UNKNOWN', `There is no selector ${JSON.stringify(name)} that chooses ${what}`, {
    data: { name, known },
    fix:
      known.length === 0
        ? 'List the plugin under selectors in paddock.config.ts.'
        : `Use one of ${known.join(', ')}, or list the plugin under selectors in paddock.config.ts.`,
  })
}

function asSelector(value: unknown): Selector {
  if (isSelector(value)) return value
  throw new PaddockError('SELECTOR_INVALID', 'a plugin under selectors is no selector', {
    fix: 'Export default defineSelector({ … }).',
  })
}

/** Enough to hand it to `defineSelector`, which checks the rest. */
function isSelector(value: unknown): value is Selector {
  return typeof value === 'object' && value !== null && 'name' in value && ('select' in value || 'choose' in value)
}
