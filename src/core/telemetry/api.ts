import { createRequire } from 'node:module'
import type * as api from '@opentelemetry/api'

let loaded: typeof api | null = null

/** OpenTelemetry's API, loaded at its first use: threads of a store and commands that only look make no span. */
export function openTelemetry(): typeof api {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package exports
  loaded ??= createRequire(import.meta.url)('@opentelemetry/api') as typeof api
  return loaded
}
