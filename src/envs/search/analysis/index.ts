export { analyserVersion, eachTerm, termOf, termsOf } from './analyse.ts'
export { eachWord, eachWordPlace } from './tokenise.ts'
