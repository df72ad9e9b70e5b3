/** What objects hold: the file of a data directory that says where they are, and what errors go by. */
export const kinds = {
  blobs: {
    file: 'blobs.json',
    unavailable: 'BLOBS_UNAVAILABLE',
    refused: 'BLOBS_REFUSED',
    other: 'BLOBS_OTHER',
    called: 'blobs',
    are: 'the blobs are',
  },
  archive: {
    file: 'archive.json',
    unavailable: 'ARCHIVE_UNAVAILABLE',
    refused: 'ARCHIVE_REFUSED',
    other: 'ARCHIVE_OTHER',
    called: 'archive',
    are: 'the archive is',
  },
} as const

export type ObjectsKind = keyof typeof kinds
