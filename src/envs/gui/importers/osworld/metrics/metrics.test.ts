/** Metrics by their names in OSWorld (desktop_env/evaluators/metrics of ljxpython/OSWorldUse at b5007a9), with values of their own rules. */
import { describe, expect, it } from 'vitest'
import { type Found, follows, indelRatio, metrics, sameUrl, sequenceRatio } from './index.ts'

const value = (given: unknown): Found => ({ kind: 'value', value: given })
const file = (text: string): Found => ({ kind: 'file', name: 'x.txt', data: Buffer.from(text) })
const rules = (expected: unknown) => value({ expected })
const score = (name: string, result: Found, expected: Found, options = {}) =>
  metrics.get(name)?.({ result, expected, options })

describe('a metric of OSWorld', () => {
  const cases: readonly (readonly [name: string, result: Found, expected: Found, score: number, options?: object])[] = [
    ['exact_match', value('a\n'), rules('a\n'), 1],
    ['exact_match', value('a'), rules('a\n'), 0],
    ['exact_match', value([1, { a: 2 }]), rules([1, { a: 2 }]), 1],
    ['match_in_list', value('b'), rules(['a', 'b']), 1],
    ['match_in_list', value('c'), rules(['a', 'b']), 0],
    ['is_in_list', value(['a', 'b']), rules('b'), 1],
    ['literal_match', value('Yes'), value('yes'), 1, { ignore_case: true }],
    ['literal_match', value(['1', 2]), value([1, '2']), 1, { type: 'list' }],
    ['literal_match', value(['1']), value([1, 2]), 0, { type: 'list' }],
    ['check_include_exclude', value('43 132 is it'), value({ include: ['43 132'], exclude: ['80'] }), 1],
    ['check_include_exclude', value('43 132 and 80'), value({ include: ['43 132'], exclude: ['80'] }), 0],
    ['check_include_exclude', null, value({ include: [] }), 0],
    ['is_utc_0', value('a\nb\nc\n Time zone: Etc/UTC (UTC, +0000)\n'), null, 1],
    ['check_gnome_favorite_apps', value("['b.desktop', 'a.desktop']"), rules(['a.desktop', 'b.desktop']), 1],
    ['check_moved_jpgs', value({ children: [{ name: 'a.jpg' }, { name: 'b.jpg' }] }), rules(['b.jpg', 'a.jpg']), 1],
    ['check_moved_jpgs', value({ children: [{ name: 'a.jpg' }] }), rules(['b.jpg', 'a.jpg']), 0],
    ['is_extension_installed', value('ms.python\n'), value({ type: 'contain', expected: 'ms.python' }), 1],
    ['is_extension_installed', value('ms.python\n'), value({ type: 'not_contain', expected: 'ms.python' }), 0],
    ['check_direct_json_object', value("{'a': 'x', 'b': 1}"), rules({ a: 'x' }), 1],
    ['check_direct_json_object', value({ a: 'x' }), rules({ a: 'y' }), 0],
    ['check_direct_json_object', value({ a: 'xyz' }), value({ expected: { a: 'y' }, expect_in_result: true }), 1],
    [
      'check_direct_json_object',
      value({ a: ['p'] }),
      value({ expected: { a: ['q', 'p'] }, expect_in_result: true }),
      1,
    ],
    ['check_direct_json_object', null, rules({ a: 'y' }), 0],
    ['check_json_settings', file('{"a": [1], "b": 2}'), rules({ a: [1] }), 1],
    ['check_json_settings', file('{"a": [1]'), rules({ a: [1] }), 0],
    ['check_json_keybindings', file('// note\n[{"key": "ctrl+f"}]'), rules({ key: 'ctrl+f' }), 1],
    ['compare_config', file('{"a": {"b": 1, "c": 2}}'), rules('{"a": {"b": 1}}'), 1],
    ['compare_config', file('{"a": {"b": 1, "c": 2}}'), rules('{"a": {"b": 1}}'), 0, { containment_ok: false }],
    ['is_included_all_json_objects', file('{"a": 1}'), file('{"a": 1, "b": 2}'), 1],
    ['compare_text_file', file('A  b\r\n'), file('a b'), 1, { ignore_blanks: true, ignore_case: true }],
    ['compare_text_file', file('a'), file('a\n'), 0],
    ['compare_csv', file('a,b \nc'), file('a,b\nc\n'), 1, { strict: false }],
    ['compare_csv', file('x'), { kind: 'files', files: [{ kind: 'file', name: '', data: Buffer.from('x\n') }] }, 1],
    [
      'check_csv',
      file('n,v\r\n"a, b",1\nc,2\n'),
      value({ expect: [{ n: 'a, b', v: '1' }], unexpect: [{ n: 'd' }] }),
      1,
    ],
    ['check_csv', file('n,v\nd,1\n'), value({ expect: [], unexpect: [{ n: 'd' }] }), 0],
    ['check_list', file('one\ntwo 2\n'), value({ expect: ['^two \\d'], unexpect: ['three'] }), 1],
    ['check_list', file('one\nthree\n'), value({ expect: ['one'], unexpect: ['three'] }), 0],
    ['file_contains', file('abc'), rules(['a', 'bc']), 1],
    ['check_line_number', file('10:11:12 x\nno\n23:59:60\n'), rules('2'), 1],
    ['compare_python_pure_text', file('#!/usr/bin/python\n\nx =\t1  \n'), file('x = 1'), 1],
    ['compare_result_files', file('it is 42 in all'), file('42\n'), 1],
    ['compare_result_files', file('about'), file('42'), 0],
    [
      'check_config_status',
      file('# c\n(undo-levels 100)\n(theme "a")\n'),
      value({ key: 'undo-levels', value: '100' }),
      1,
    ],
    ['is_expected_active_tab', value({ url: 'https://www.a.com/' }), value({ type: 'url', url: 'https://a.com' }), 1],
    ['is_expected_active_tab', null, value({ type: 'url', url: 'https://a.com' }), 0],
    [
      'is_expected_active_tab_approximate',
      value('https://a.com/x?b=1'),
      value({ type: 'url', url: 'https://a.com/x' }),
      1,
    ],
    ['is_expected_url_pattern_match', value('https://a.com/b?c=1'), rules(['a\\.com', 'c=(?P<n>\\d)']), 1],
    ['is_expected_search_query', value({ url: 'https://s.com/?q=owl' }), value({ expect: { pattern: 'q=owl' } }), 1],
    [
      'is_expected_tabs',
      value([{ url: 'https://b.org/' }, { url: 'http://a.com/x' }]),
      value({ type: 'url', urls: ['http://www.a.com/x', 'https://b.org'] }),
      1,
    ],
    [
      'is_expected_tabs',
      value([{ url: 'https://b.org/' }]),
      value({ type: 'url', urls: ['https://b.org', 'http://a.com'] }),
      0,
    ],
    [
      'is_expected_bookmarks',
      value({ bookmark_bar: { children: [{ type: 'folder', name: 'F' }] } }),
      value({ type: 'bookmark_bar_folders_names', names: ['F'] }),
      1,
    ],
    ['is_in_vm_clickboard', rules(['a', 'b']), value('b and a'), 1],
  ]
  it.each(cases.map((one) => ({ one, name: one[0] })))(
    '$name: $one',
    ({ one: [name, result, expected, wanted, options = {}] }) => {
      expect(score(name, result, expected, options)).toBe(wanted)
    },
  )

  it('measures likeness as the libraries of OSWorld do', () => {
    // rapidfuzz.fuzz.ratio('kitten', 'sitting') is 61.54.
    expect(score('fuzzy_match', value('kitten'), rules('sitting'))).toBeCloseTo(0.6154, 4)
    expect(indelRatio('', '')).toBe(1)
    // difflib.SequenceMatcher of Python 3.11, the second with its heuristic for long lists.
    const [a, b] = ['ecfcfffeadbfabacdbdeaebafbdcbdbabeedbbaa', 'bbbbccbeffbbfbdcacdbbcacceeaeffcacccd']
    expect(sequenceRatio(Array.from(a), Array.from(b))).toBeCloseTo(0.38961038961038963, 10)
    const tenth = Array.from('abcdefghij')
    const many = (list: readonly string[], times: number) => Array.from({ length: times }, () => list).flat()
    const [left, right] = [
      [...many(['x'], 120), ...many(tenth, 10)],
      [...many(tenth, 9), ...many(['x'], 130)],
    ]
    expect(sequenceRatio(left, right)).toBeCloseTo(0.0, 10)
    expect(score('diff_text_file', file('a\nb\nc\n'), file('a\nc\n'))).toBeCloseTo(0.8, 10)
  })

  it('follows the rules of check_json, and refuses those that it does not know', () => {
    const settings = file('{"a": {"b": "12.5"}, "list": [{"c": 3}]}')
    const check = (key: readonly unknown[], method: string, ref: unknown) =>
      score('check_json', settings, value({ expect: [{ key, method, ref }] }))
    expect(check(['a', 'b'], 'approx:0.6', 12)).toBe(1)
    expect(check(['a', 'b'], 're', '^1\\d')).toBe(1)
    expect(check(['list', 0, 'c'], 'range.te', [0, 3])).toBe(1)
    expect(check(['list', 0, 'c'], 'lt', 3)).toBe(0)
    expect(check(['a', 'none'], 'eq', 1)).toBe(0)
    expect(score('check_json', settings, value({ unexpect: [{ key: ['a', 'b'], method: 'eq', ref: '12.5' }] }))).toBe(0)
    expect(follows('"a,b"', { method: 'str_set_eq', ref: ['b', 'a'] })).toBe(true)
    expect(follows('a,b', { method: 'str_list_eq', ref: ['b', 'a'] })).toBe(false)
    expect(() => check(['a', 'b'], 'spreadsheet_range', [])).toThrow(/no method spreadsheet_range/)
    expect(() => score('exact_match', value('a'), null)).toThrow(/rules are no object/)
  })

  it('takes addresses for one by host, path and query', () => {
    for (const [a, b] of [
      ['https://www.Airbnb.com/', 'https://airbnb.com'],
      ['https://airbnb.com.sg/x', 'https://airbnb.com/x'],
      ['drive.google.com/drive', 'http://drive.google.com/drive'],
    ] as const) {
      expect(sameUrl(a, b), `${a} and ${b}`).toBe(true)
    }
    for (const [a, b] of [
      ['https://a.com/x', 'https://a.com/x/'],
      ['https://a.com', 'http://a.com'],
      ['https://mail.a.com', 'https://a.com'],
      ['https://a.com/?q=1', 'https://a.com/?q=2'],
      ['http://127.0.0.1/', 'http://127.0.0.2/'],
    ] as const) {
      expect(sameUrl(a, b), `${a} and ${b}`).toBe(false)
    }
  })
})
