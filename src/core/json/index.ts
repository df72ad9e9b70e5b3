export { canonicalOrRaw, canonicalText } from './canonical.ts'
export { cutMembers, editObject, type ObjectEdit } from './edit.ts'
export {
  duplicateKeys,
  type LosslessJson,
  type LosslessMember,
  maxNesting,
  parseLossless,
  stringifyLossless,
} from './lossless.ts'
export {
  decodeString,
  type JsonMember,
  nestingDepth,
  scanElements,
  scanMembers,
  skipSpace,
  skipString,
  skipValue,
} from './scan.ts'
export { ShortTexts } from './short-texts.ts'
