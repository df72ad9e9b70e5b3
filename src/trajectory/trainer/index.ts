export { isAnnounced, SqlTrainerBook } from './trainer-book.ts'
export { SqlTrainerReader } from './trainer-reader.ts'
export { ageOf, type Given, type RolloutTraining, RunTraining } from './run-training.ts'
