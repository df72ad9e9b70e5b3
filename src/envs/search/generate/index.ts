export { questionLevels } from './questions.ts'
export { generatePassages, generateQuestions, type GeneratedSource, type QuestionRow } from './generate.ts'
