export { type Rewrite, rewriteSchema } from './edits.ts'
export { Rewrites } from './rewrites.ts'
export { type AskedRewrite, rewriteRollouts, type RewriteOptions, type RewriteReport } from './rewrite.ts'
