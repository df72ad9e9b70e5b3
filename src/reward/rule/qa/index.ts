export { duplicateQueries, overSearch, penalised } from './conduct.ts'
export { answerInEvidence, citationsGrounded, evidenceRecall } from './evidence.ts'
export { answerContains, answerF1, answerMatch } from './match.ts'
export { normaliseAnswer } from './normalise.ts'
