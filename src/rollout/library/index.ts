export { type LibraryEvent, libraryPlace, type PutLibrary, putLibrary, takeLibrary, usedOf } from './library.ts'
