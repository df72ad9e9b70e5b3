/** What objects hold: the file of a data directory that says where they are, and what errors go by. */
export const kinds = {
  blobs: {
    file: 'blobs.json',
    unavailable: 'BLOBS_UNAVAILABLE',
    refused: 'BLOBS_REFUSED',
    other: 'BLOBS_OTHER',
    called: 'blobs',
  },
  archive: {
    file: 'archive.json',
    unavailable: 'ARCHIVE_UNAVAILABLE',
    refused: 'ARCHIVE_REFUSED',
    other: 'ARCHIVE_OTHER',
    called: 'archive',
  },
} as const

export type ObjectsKind = keyof typeof kinds
