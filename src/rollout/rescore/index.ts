export { type Rescored, type RescoreOptions, type RescoreOutcome, rescoreRollouts } from './rescore.ts'
