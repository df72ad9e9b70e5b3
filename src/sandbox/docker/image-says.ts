import type Docker from 'dockerode'
import { z } from 'zod'
import type { ImageSays } from '../contract/index.ts'
import { markLabel, saysLabel } from './labels.ts'

/** Newer daemons leave out what is empty. */
const config = z.object({
  WorkingDir: z.string().nullish(),
  User: z.string().nullish(),
  Entrypoint: z.union([z.string().transform((one) => [one]), z.array(z.string())]).nullish(),
  Env: z.array(z.string()).nullish(),
  Labels: z.record(z.string(), z.string()).nullish(),
})
const kept = z.object({
  workdir: z.string(),
  user: z.string().nullable(),
  entrypoint: z.array(z.string()),
  path: z.array(z.string()).optional(),
})

/** What an image says; of a snapshot, what the image said that it began with: the box's own words are ours. */
export function saysOf(facts: Docker.ImageInspectInfo): ImageSays {
  const { WorkingDir: workdir, User: user, Entrypoint: entrypoint, Env, Labels: labels } = config.parse(facts.Config)
  const text = ['snapshot', 'kept'].includes(labels?.[markLabel] ?? '') ? labels?.[saysLabel] : undefined
  if (text !== undefined) {
    const { path, ...said } = kept.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    return path === undefined ? said : { ...said, path }
  }
  const path = Env?.find((one) => one.startsWith('PATH='))?.slice(5)
  return {
    workdir: workdir || '/',
    user: ['', '0', 'root', '0:0', 'root:root'].includes(user ?? '') ? null : (user ?? null),
    entrypoint: entrypoint ?? [],
    path: (path ?? '').split(':').filter((place) => place.startsWith('/')),
  }
}

/** For {@link saysLabel}; nothing in it means anything to a Dockerfile. */
export function saysText(says: ImageSays): string {
  return Buffer.from(JSON.stringify(says)).toString('base64url')
}
