export type { VerdictDraft } from './draft.ts'
