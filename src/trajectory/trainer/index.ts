export { SqlTrainerBook } from './trainer-book.ts'
export { SqlTrainerReader } from './trainer-reader.ts'
