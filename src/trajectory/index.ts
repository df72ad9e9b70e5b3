export type * from './contract.ts'
export { tokenFlag } from './contract.ts'
export type * from './rows-contract.ts'
