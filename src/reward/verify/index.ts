export { type CheckOutcome, type CheckSpec, runCheck } from './check.ts'
export { isStarved } from './cpu-share.ts'
export { directoryDigest } from './digest.ts'
export { readRewardFiles, type RewardReading } from './reward-file.ts'
