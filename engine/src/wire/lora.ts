import { existsSync } from 'node:fs'
import { EngineError, validationError } from '../errors.ts'
import { readText } from '../json/read.ts'
import { neverLoaded } from '../adapters.ts'
import type { Engine } from '../engine.ts'
import type { Generation } from '../generation/generation.ts'
import type { Exchange } from '../http/exchange.ts'
import type { RouteTable } from '../http/server.ts'
import type { JsonObject } from '../json/lossless.ts'

/** vLLM 0.32.0, `entrypoints/serve/lora/api_router.py` and `entrypoints/openai/models/serving.py`; with `VLLM_ALLOW_RUNTIME_LORA_UPDATING`. */
export const vllmLoraRoutes: RouteTable = {
  'POST /v1/load_lora_adapter': async (exchange, engine) => {
    const { name, path } = await asked(exchange)
    const refused = (message: string) => new EngineError(message, { type: 'InvalidUserInput' })
    if (name === engine.profile.model) throw refused(`The lora adapter '${name}' conflicts with a served base model.`)
    if (engine.adapters.has(name)) throw refused(`The lora adapter '${name}' has already been loaded.`)
    if (!existsSync(path)) {
      const message = `Loading lora ${name} failed: No adapter found for <path>`
      throw new EngineError(message, { status: 404, type: 'NotFoundError' })
    }
    engine.adapters.set(name, path)
    exchange.text(`Success: LoRA adapter '${name}' added successfully.`, 200, {})
  },
  'POST /v1/unload_lora_adapter': async (exchange, engine) => {
    const name = readText(await exchange.body(), 'lora_name') ?? ''
    if (!engine.adapters.delete(name)) {
      throw new EngineError(`The lora adapter '${name}' cannot be found.`, { status: 404, type: 'NotFoundError' })
    }
    exchange.text(`Success: LoRA adapter '${name}' removed successfully.`, 200, {})
  },
}

/** SGLang 0.5.23, `srt/entrypoints/http_server.py` and `srt/managers/tokenizer_control_mixin.py`; with `--enable-lora`. */
export const sglangLoraRoutes: RouteTable = {
  'POST /load_lora_adapter': async (exchange, engine) => {
    const { name, path } = await asked(exchange)
    const why = engine.adapters.has(name)
      ? `LoRA adapter with name ${name} already loaded.`
      : existsSync(path)
        ? null
        : `No adapter at ${path}`
    if (why === null) engine.adapters.set(name, path)
    exchange.json(outcome(engine, why), why === null ? 200 : 400)
  },
  'POST /unload_lora_adapter': async (exchange, engine) => {
    const name = readText(await exchange.body(), 'lora_name') ?? ''
    const why = engine.adapters.delete(name) ? null : `LoRA with name ${name} does not exist`
    exchange.json(outcome(engine, why), why === null ? 200 : 400)
  },
}

/** What a request runs under, by vLLM's `model` or SGLang's `lora_path` and `base:adapter`; null: the base model. */
export function adapterOf(body: JsonObject, { adapters, options }: Engine): string | null {
  const model = readText(body, 'model')
  if (options.wire === 'vllm') return model !== undefined && adapters.has(model) ? model : null
  if (options.wire !== 'sglang') return null
  const named = model?.includes(':') === true ? model.slice(model.indexOf(':') + 1) : readText(body, 'lora_path')
  if (named === undefined) return null
  if (!adapters.has(named)) throw neverLoaded(named)
  return named
}

/** The model as an answer names it: vLLM by the adapter, SGLang by the base. */
export function servedAs({ profile, options }: Engine, { plan }: Generation): string {
  return (options.wire === 'vllm' ? plan.adapter : null) ?? profile.model
}

async function asked(exchange: Exchange): Promise<{ readonly name: string; readonly path: string }> {
  const body = await exchange.body()
  const [name, path] = [readText(body, 'lora_name'), readText(body, 'lora_path')]
  if (name === undefined) throw validationError('Field required', 'lora_name')
  if (path === undefined) throw validationError('Field required', 'lora_path')
  return { name, path }
}

function outcome({ adapters }: Engine, why: string | null): object {
  const loaded = Object.fromEntries(adapters.list().map(({ name, path }) => [name, path]))
  return { success: why === null, error_message: why, loaded_adapters: loaded }
}
