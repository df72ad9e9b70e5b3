export { salvage, type SalvageReport } from './salvage.ts'
