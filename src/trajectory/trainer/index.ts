export { SqliteTrainerBook } from './sqlite-trainer-book.ts'
export { SqliteTrainerReader } from './sqlite-trainer-reader.ts'
