export type { NodeVerification } from './contract.ts'
export { type AskedWork, type Verification, Verifications } from './verifications.ts'
export { type AskedVerification, digestOf, isFault, type Verified, VerifyJobs } from './verify-jobs.ts'
export { verifyOrder, type VerifyOrder } from './verify-order.ts'
