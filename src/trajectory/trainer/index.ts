export { SqliteTrainerBook } from './sqlite-trainer-book.ts'
