export { type Frame, writeFrames } from './frames.ts'
