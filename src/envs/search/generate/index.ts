export { generatePassages, generateQuestions, type GeneratedSource, type QuestionRow } from './generate.ts'
export { dice, type Dice } from './dice.ts'
