export { type PackedRollout, packRollout } from './pack.ts'
export { type StoreTakenIn, takeInStore } from './from-store.ts'
export { type SentRollout, type TakenIn, takeInRollout } from './receive.ts'
export { putGroupOnce } from './group-once.ts'
