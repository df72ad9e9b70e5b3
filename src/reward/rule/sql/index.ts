export { compareTables, type CompareOptions, type Comparison } from './compare.ts'
export { type SqlPreset, sqlPresetNames, sqlPresets, type SqlSemantics } from './semantics.ts'
export { spiderRepaired, withoutDistinct } from './order-by.ts'
export { rVes, type RVes } from './r-ves.ts'
export { softF1 } from './soft-f1.ts'
export {
  type DatabaseState,
  probeDifferences,
  type Probe,
  stateDifferences,
  type StateOptions,
  type StateTable,
} from './state.ts'
export type { ResultTable, SqlValue } from './table.ts'
