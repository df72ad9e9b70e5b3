export { generatePassages, generateQuestions, type GeneratedSource, type QuestionRow } from './generate.ts'
