export { leftOf, libraryLeftBy, libraryOf } from './left-by.ts'
export { type LibraryEvent, libraryPlace, type PutLibrary, putLibrary, takeLibrary, usedOf } from './library.ts'
