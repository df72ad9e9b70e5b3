import type { CallClass, Lineage } from '../../core/index.ts'
export function classifyCall(_lineage: Lineage, _history: readonly unknown[]): CallClass {
  return 'main'
}
