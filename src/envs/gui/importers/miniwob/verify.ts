import {
  type DraftFacts,
  gui,
  packArtifact,
  scored,
  sha256,
  type TaskOf,
  unscored,
  type VerdictDraft,
  type VerifyContext,
} from '../../../../kits/environment.ts'
import type { MiniwobData } from './data.ts'
import { type Episode, episodeSchema } from './site.ts'

/**
 * Scores what the host was told of the episode. The number itself is the page's own, as everywhere with MiniWoB++: the
 * verdict holds that it came from the page's code, once, for this episode, and not that the page judges well.
 */
export async function verifyEpisode({
  task,
  artifacts,
  signal,
}: Omit<VerifyContext, 'task'> & { readonly task: TaskOf<MiniwobData> }): Promise<VerdictDraft> {
  signal.throwIfAborted()
  const record = gui.fromArtifacts(artifacts)
  const episode = episodeSchema.parse(record.state)
  const packed = await Promise.all(artifacts.items.map(packArtifact))
  const { end, utterance } = episode
  const facts: DraftFacts = {
    verifier: { id: `gui/miniwob/${task.data.page}`, version: gui.verifierVersion, sha256: sha256(task.data.sha256) },
    trust: 'host',
    components: { episode: rewardOf(episode, task.data), ...(end === null ? {} : { raw: end.raw }) },
    evidence: [
      `asked for: ${utterance ?? 'nothing, the episode did not start'}`,
      end === null
        ? 'the episode did not end'
        : `the page ended it after ${end.elapsedMs} ms with ${end.raw}${end.reason === null ? '' : ` (${end.reason})`}`,
      `the attempt was ${record.ended ?? 'not ended'} after ${record.actions} actions, ${record.forged} reports were forged and refused`,
    ].join('\n'),
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
  if (utterance === null) return unscored('unscorable', 'The page did not start its episode', facts)
  return scored(rewardOf(episode, task.data), facts)
}

/** From 0 to 1. `scaled` shrinks by the host's clock as `core.endEpisode` does by the page's. */
export function rewardOf(
  { end, limitMs }: Episode,
  { score, threshold }: Pick<MiniwobData, 'score' | 'threshold'>,
): number {
  if (end === null) return 0
  const { raw, scaled, elapsedMs } = end
  switch (score) {
    case 'binary':
      return raw === 1 ? 1 : 0
    case 'thresholded':
      return raw >= threshold ? 1 : 0
    case 'raw':
      return Math.max(0, raw)
    case 'scaled': {
      const left = scaled && limitMs !== null ? Math.max(0, 1 - elapsedMs / limitMs) : 1
      return Math.max(0, raw * left)
    }
  }
}
