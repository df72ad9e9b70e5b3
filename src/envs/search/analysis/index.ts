export { analyserVersion, eachTerm, termOf, termsOf } from './analyse.ts'
export { eachWord } from './tokenise.ts'
