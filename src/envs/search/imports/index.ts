export { importQuestions, type PlacedQuestion } from './questions.ts'
