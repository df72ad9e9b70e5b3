export { type BuildKitPiece, buildKitPieces, type Frontend, frontendOf } from './build-kit.ts'
export { type UsedImage, usedImages, withImages } from './images.ts'
export { assignmentsOf, expanded, instructionsOf } from './instructions.ts'
