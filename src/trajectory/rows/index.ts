export { Accounting, sampledTokens } from './account.ts'
export { buildRows, type BuiltRows, type RowOptions } from './build.ts'
export { Forest, type PathStep } from './forest.ts'
export { defaultTrainClasses } from './usable.ts'
