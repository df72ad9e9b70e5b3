import { expect, it } from 'vitest'
import { type Digest, PaddockError } from '../../core/index.ts'
import type { GroupRecord } from '../contract/index.ts'
import { putGroupOnce } from './group-once.ts'

const group: GroupRecord = { id: 'g', runId: 'r', taskDigest: 't' as Digest, promptVariant: 'default', createdAt: 1 }
const catalogueWith = (there: GroupRecord) => ({
  group: () => Promise.resolve(there),
  putGroup: () => Promise.reject(new PaddockError('STORE_CONFLICT', 'another record stands under g')),
})

it('takes a group that was asked for at another time as the same, and no other one', async () => {
  await putGroupOnce(catalogueWith({ ...group, createdAt: 2 }), group)
  for (const other of [{ runId: 's' }, { taskDigest: 'u' as Digest }, { promptVariant: 'hint' }]) {
    await expect(putGroupOnce(catalogueWith({ ...group, ...other }), group)).rejects.toMatchObject({
      code: 'STORE_CONFLICT',
    })
  }
})
