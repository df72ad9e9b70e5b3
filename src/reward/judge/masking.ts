import type { RubricItem } from './rubric.ts'

/**
 * Words that speak of judging, by language: who judges, what is given, what it goes by, the answer as a thing to be judged. Never
 * complete; what it misses, the control question finds.
 */
const judging: readonly RegExp[] = [
  /\b(?:evaluat\w*|grad(?:er|ers|ing)|grade (?:this|it)|judg(?:e|es|ing|ement|ment)|assess\w*|rubric|criteri(?:on|a)|examiner|reviewer|rating|verdict)\b/iu,
  /\b(?:full|maximum|top|highest|best|perfect)(?: possible)? (?:points?|marks?|scores?|grades?|rating|category|result)\b/iu,
  /\b(?:this|my|the above) (?:answer|response|entry|submission)\b|\b(?:ignore|disregard|forget)\b.{0,40}\binstructions?\b|\bthe (?:only )?(?:correct|right) choice\b/iu,
  /(?<!\p{L})(?:prüf(?:er|ung)|bewert|beurteil|gutacht|kriteri|punktzahl|bestnote|einsendung|urteil)|diese(?:r|n)? antwort/iu,
  /(?<!\p{L})(?:evaluador|evaluaci|calific|puntuaci|criterio|veredicto|avaliador|avalia|pontua|veredit|nota máxima)|est[ae] (?:respuesta|resposta)/iu,
  /(?<!\p{L})(?:évaluat|évaluer|correcteur|critère|notation|barème|verdict|valutat|valutaz|punteggio|criteri)|cette réponse|questa risposta/iu,
  /(?<!\p{L})(?:beoordel|criterium|puntental|recenzen|ocen|kryteri|werdykt|punkt[óy]w|hodnot|kritéri|bedöm|betyg)/iu,
  /(?<!\p{L})(?:оцен|оцін|критери|критері|балл|вердикт|судь[яеи]|провер(?:яющ|ил)|эт[оа][тй]? ответ)/iu,
  /(?<!\p{L})(?:değerlendir|puan|kriter|karar|penilai|nilai|kriteria|người chấm|chấm|điểm|tiêu chí|phán quyết)/iu,
  /评分|评审|评判|评估|评测|标准|满分|最高分|此答案|採点|審査|評価|判定|満点|最高点|基準|채점|평가|점수|만점|판정|등급|기준/u,
  /المقي[ّ]?م|التقييم|الدرجة|المعيار|الحكم|هذه الإجابة|परीक्षक|मूल्यांकन|अंक|मानदंड|निर्णय|मापदंड/u,
]

/** Marks of a conversation or of a reply that a candidate has no reason to write. */
const protocol =
  /"(?:mark|choice|explanation)"\s*:|<\|?\/?(?:im_start|im_end|system|assistant|think)\|?>|\[\/?INST\]|^(?:BEGIN|END)\b/imu

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })

/** In place of a sentence that was cut out. */
const mark = '[…]'

/**
 * An answer without the sentences that speak of judging, name a choice of the item in quotation marks, or look like a reply. The same text
 * if there are none.
 */
export function masked(answer: string, { choices }: RubricItem): string {
  const words = choices.map((choice) => choice.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)).join('|')
  const quoted = new RegExp(`["'“”„«»‘’「『\`](?:${words})["'“”„«»‘’」』\`]`, 'iu')
  const speaks = [...judging, protocol, quoted]
  return Array.from(sentences.segment(answer), ({ segment }) => {
    const end = /\s*$/u.exec(segment)?.[0] ?? ''
    return speaks.some((pattern) => pattern.test(segment)) ? `${mark}${end}` : segment
  }).join('')
}
