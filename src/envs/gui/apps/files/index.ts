export { files } from './files.ts'
