import { harnessContract } from 'paddock-rl/testing'
import harness from './harness.ts'

harnessContract(harness)
