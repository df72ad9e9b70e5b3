export { breakIns } from './break-ins.ts'
export { repairs } from './repairs.ts'
