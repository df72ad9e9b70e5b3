import { exporterContract } from 'paddock-rl/testing'
import exporter from './exporter.ts'

exporterContract(exporter, {})
