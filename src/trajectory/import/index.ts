export { importFormats } from './read.ts'
export { importTrajectories, type ImportReport, type ImportRequest } from './write.ts'
