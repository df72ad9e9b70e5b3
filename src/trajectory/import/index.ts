export { importFormats } from './read.ts'
export { importTrajectories, type ImportReport, type ImportRequest } from './write.ts'
export { takeIn, type TakeIn, type TakenIn, type TakeInReport } from './taken-in.ts'
