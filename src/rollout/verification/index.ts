export { type AskedWork, type Verification, Verifications } from './verifications.ts'
