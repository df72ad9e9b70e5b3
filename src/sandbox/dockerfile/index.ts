export { type UsedImage, usedImages, withImages } from './images.ts'
export { assignmentsOf, expanded, instructionsOf } from './instructions.ts'
