export type { ChainSpec } from './contract.ts'
export { requireChain, runChain } from './run-chain.ts'
