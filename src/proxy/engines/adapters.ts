import { PaddockError } from '../../core/index.ts'
import { askEngine, tellEngine } from './http.ts'
import { modelCards } from './models.ts'

/** A LoRA adapter: what the server calls it, and where it finds its files. Null: whoever loaded it knows. */
export interface Adapter {
  readonly name: string
  readonly path: string | null
}

/** What a server lists. */
export interface ListedAdapters {
  /** Names of the model that adapters are put on. */
  readonly base: readonly string[]
  readonly adapters: readonly Adapter[]
}

/** How an engine is told of LoRA adapters. Wire shapes only; each rejects with `ENGINE_UNREACHABLE`. */
export interface AdapterRoutes {
  /** The request member that names one. `model`: its answers name it there, and else nobody's do. */
  readonly member: 'model' | 'lora_path'
  /** Whether a request for this model means the one that adapters are put on. */
  isBase(model: string, base: readonly string[]): boolean
  /** Rejects with `ENGINE_ERROR` where the server lists nothing. */
  listed(): Promise<ListedAdapters>
  /** Null: it is there; else what the server says. */
  load(adapter: Adapter & { readonly path: string }): Promise<string | null>
  /** Requests that run under it go on to their end. */
  unload(name: string): Promise<string | null>
}

/** What vLLM and SGLang have in common: the bodies of the routes, and adapters in the list of models, each with a parent. */
export function adapterRoutes(
  root: string,
  apiKey: string | null,
  own: Pick<AdapterRoutes, 'member' | 'isBase'> & { readonly loadPath: string; readonly unloadPath: string },
): AdapterRoutes {
  const tell = async (path: string, body: Readonly<Record<string, string>>): Promise<string | null> => {
    const { status, text } = await tellEngine(root, path, apiKey, body)
    return status < 300 ? null : `${status}: ${text.slice(0, 300)}`
  }
  return {
    member: own.member,
    isBase: own.isBase,
    async listed() {
      const cards = modelCards(await askEngine(root, '/v1/models', apiKey))
      if (cards.length === 0) throw new PaddockError('ENGINE_ERROR', `The engine at ${root} lists no models.`)
      const base: string[] = []
      const adapters: Adapter[] = []
      for (const { id, parent, root: path } of cards) {
        if (typeof id !== 'string') continue
        if (typeof parent === 'string') adapters.push({ name: id, path: typeof path === 'string' ? path : null })
        else base.push(id)
      }
      return { base, adapters }
    },
    load: ({ name, path }) => tell(own.loadPath, { lora_name: name, lora_path: path }),
    unload: (name) => tell(own.unloadPath, { lora_name: name }),
  }
}
