export { environmentContract, type EnvironmentContractOptions } from './contract.ts'
