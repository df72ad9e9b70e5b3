import { EngineError } from './errors.ts'

/** LoRA adapters by name. They change nothing of what is sampled: the journal says what ran under which. */
export class Adapters {
  readonly #paths = new Map<string, string>()

  has(name: string): boolean {
    return this.#paths.has(name)
  }

  list(): readonly { readonly name: string; readonly path: string }[] {
    return [...this.#paths].map(([name, path]) => ({ name, path }))
  }

  set(name: string, path: string): void {
    this.#paths.set(name, path)
  }

  /** False where there was none. What runs under it goes on. */
  delete(name: string): boolean {
    return this.#paths.delete(name)
  }
}

/** SGLang's words for a name that it does not know (`managers/tokenizer_manager.py` `_resolve_lora_path`, 0.5.23). */
export function neverLoaded(name: string): EngineError {
  return new EngineError(`Got LoRA adapter that has never been loaded: ${name}`)
}
